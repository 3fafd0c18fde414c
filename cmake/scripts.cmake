# Writes Lua scripts as C texts: cmake -DSCRIPTS=<directory> -DOUT=<file> -P scripts.cmake
# SPDX-License-Identifier: MIT

function(add_script name)
    set(lines "")
    foreach(part ${ARGN})
        file(READ ${SCRIPTS}/${part}.lua text)
        string(REPLACE "\\" "\\\\" text "${text}")
        string(REPLACE "\"" "\\\"" text "${text}")
        string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
        string(APPEND lines "    \"${text}\"\n")
    endforeach()
    file(APPEND ${OUT}.new "\nconst char wr_lua_${name}[] =\n${lines};\n")
endfunction()

file(WRITE ${OUT}.new "/* Made by cmake/scripts.cmake. */\n#include \"redis/scripts.h\"\n")
add_script(open common open)
add_script(permits common permits)
add_script(rate common rate)
add_script(window common window)
add_script(compat compat)
file(RENAME ${OUT}.new ${OUT})
