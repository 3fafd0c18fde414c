# Tests of the built `weir` command, and what they run.
# SPDX-License-Identifier: MIT

# What `weir map` starts in tests by the hundred thousand: so small that starting it costs little.
add_executable(map-child tests/command/map_child.c)
target_include_directories(map-child PRIVATE tests)
target_compile_options(map-child PRIVATE -O2 -ffreestanding -fno-stack-protector -fno-pie
    -fno-sanitize=all)
target_link_options(map-child PRIVATE -static -nostdlib -fno-sanitize=all
    $<$<C_COMPILER_ID:Clang>:-Qunused-arguments>) # of -no-pie, which CMake adds
set_target_properties(map-child PROPERTIES POSITION_INDEPENDENT_CODE OFF
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/command)

# Starting commands, a model of a terminal's screen, and a file system of its own kind.
add_library(command-support STATIC tests/command/command.c tests/command/screen.c
    tests/command/fuse_directory.c)
target_include_directories(command-support PRIVATE tests include ${CMOCKA_INCLUDE_DIR})
target_compile_definitions(command-support PUBLIC
    WEIR_COMMAND="$<TARGET_FILE:weir-command>" MAP_CHILD="$<TARGET_FILE:map-child>"
    WEIR_SOURCE="${PROJECT_SOURCE_DIR}")
add_dependencies(command-support weir-command map-child)

weir_tests(command "weir-cli;command-support" tests/command/*_test.c)
if(TARGET map_journal_test) # looks at journals by itself
    target_include_directories(map_journal_test PRIVATE ${SQLITE3_INCLUDE_DIR})
endif()
