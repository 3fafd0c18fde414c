# What distributions ask of installed libraries and programs, as far as the compiler knows it.
# SPDX-License-Identifier: MIT
#
# Indirect branches are marked, and the shadow stack of x86 is not claimed: switching stacks by hand would
# need to switch it as well. See docs/decisions.md.

include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

# weir_harden_flag(<flag>) adds a flag to hardening_flags if the compiler takes it.
function(weir_harden_flag flag)
    string(MAKE_C_IDENTIFIER "weir_has${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
        set(hardening_flags ${hardening_flags} ${flag} PARENT_SCOPE)
    endif()
endfunction()

set(hardening_flags "")
weir_harden_flag(-fstack-protector-strong)
weir_harden_flag(-fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|i.86)$")
    weir_harden_flag(-fcf-protection=branch)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    weir_harden_flag(-mbranch-protection=standard)
endif()

# Checked calls need optimisation, and sanitizers check better; a level that was given stays.
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug AND NOT WEIR_SANITIZE
   AND NOT "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_RELEASE}" MATCHES "_FORTIFY_SOURCE|-O0")
    check_c_source_compiles("
        #include <stdlib.h>
        int main(int n, char **v) {
            char *p = malloc((size_t)n);
            return v && __builtin_dynamic_object_size(p, 0) == (size_t)n;
        }" weir_has_dynamic_object_size)
    set(fortify_level $<IF:$<BOOL:${weir_has_dynamic_object_size}>,3,2>)
    list(APPEND hardening_flags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify_level})
endif()

# A static program would have to be linked in yet another way.
if(NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-static")
    check_pie_supported()
endif()

# weir_harden(<target>...)
function(weir_harden)
    foreach(target ${ARGN})
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${hardening_flags}>")
        target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
    endforeach()
endfunction()
