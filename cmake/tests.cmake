# Every test is found by its place and name, and is a program of its own.
# SPDX-License-Identifier: MIT
#
#   src/<room>/*_test.c        unit          beside what they test, see its private symbols
#   ${pure_tests}, below       pure          the same of parts that one thread uses, so not under TSan
#   src/sim/, tests/sim/       sim           linked with the simulator; one thread, so not under TSan
#   tests/fuzz/*_test.c        fuzz          random calls of the API, on the simulator
#   tests/fuzz/*_target.c      fuzz          random bytes for parts of the command
#   tests/stress/*_test.c      stress        real threads
#   tests/integration/*_test.c integration   the library as users meet it
#   tests/command/*_test.c     command       the built `weir`, in pipes and on terminals
#   tests/redis/*_test.c       redis         libweir-redis against servers that the tests start
#   tests/redis/*_chaos_test.c chaos         the same with faults by chance, judged by the clock
#   tests/smoke/smoke.c        smoke         no cmocka: runs where only libc is at hand
#   examples/*.c               example       public API and shared library only
#
# tools/test learns what was built from tests.list: suite, name and program on each line.

set(pure_tests src/cli/input/*_test.c src/cli/opt/*_test.c src/cli/screen/*_test.c src/cli/engine/spool_test.c
    src/base/json_test.c src/base/queue_test.c src/limits/circle_test.c src/limits/gates_test.c src/limits/lead_test.c src/limits/ledger_test.c src/limits/ledger_random_test.c
    src/flow/plan_test.c src/guard/adaptive_test.c src/guard/breaker_test.c src/guard/frequency_test.c
    src/guard/rate_test.c)

enable_testing()
set(test_list "")
set(test_properties TIMEOUT 86400 ENVIRONMENT # tools/limit knows better when one is lost
    "CMOCKA_MESSAGE_OUTPUT=STDOUT;TSAN_OPTIONS=halt_on_error=1;UBSAN_OPTIONS=print_stacktrace=1")

# weir_program(<suite> <target> <directory> <source> <library>...)
function(weir_program suite target directory source)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${directory})
    add_test(NAME ${target} COMMAND ${PROJECT_SOURCE_DIR}/tools/limit 300
        ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}>)
    set_tests_properties(${target} PROPERTIES LABELS ${suite} ${test_properties})
    set(test_list "${test_list}${suite} ${target} $<TARGET_FILE:${target}>\n" PARENT_SCOPE)
endfunction()

# weir_tests(<suite> <library> <pattern>...) makes one cmocka program of each file.
function(weir_tests suite library)
    file(GLOB files CONFIGURE_DEPENDS ${ARGN})
    if(NOT (SQLITE3_INCLUDE_DIR AND SQLITE3_LIBRARY))
        list(FILTER files EXCLUDE REGEX "/(journal_file|map_journal|docs)_test\\.c$")
    endif()
    if(NOT suite STREQUAL sim)
        list(FILTER files EXCLUDE REGEX "/src/sim/")
    endif()
    if(suite STREQUAL unit)
        file(GLOB pure ${pure_tests})
        list(REMOVE_ITEM files "" ${pure})
    endif()
    if(suite STREQUAL redis)
        list(FILTER files EXCLUDE REGEX "_chaos_test\\.c$")
    endif()
    if(NOT library MATCHES weir-redis)
        list(FILTER files EXCLUDE REGEX "/src/redis/")
    endif()
    foreach(file ${files})
        get_filename_component(target ${file} NAME_WE)
        if(TARGET ${target}) # two rooms may each have a list_test.c
            set(target ${suite}_${target})
        endif()
        weir_program(${suite} ${target} tests/${suite} ${file} ${library} ${CMOCKA_LIBRARY})
        target_include_directories(${target} PRIVATE src tests ${CMOCKA_INCLUDE_DIR})
        # To optimise long lists of assertions under ASan takes five times as long, and makes no test faster.
        if(WEIR_SANITIZE MATCHES address)
            target_compile_options(${target} PRIVATE -O0)
        endif()
    endforeach()
    set(test_list "${test_list}" PARENT_SCOPE)
endfunction()

if(EXISTS ${PROJECT_SOURCE_DIR}/tests/smoke/smoke.c)
    weir_program(smoke smoke tests tests/smoke/smoke.c weir-static)
endif()

# A plain `make` must work with a compiler alone, so cmocka is missed, not required.
find_path(CMOCKA_INCLUDE_DIR cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
mark_as_advanced(CMOCKA_INCLUDE_DIR CMOCKA_LIBRARY)
if(CMOCKA_INCLUDE_DIR AND CMOCKA_LIBRARY)
    weir_tests(unit weir-cli src/*/*_test.c src/cli/engine/*_test.c)
    weir_tests(pure weir-cli ${pure_tests})
    include(cmake/redis_tests.cmake)
    weir_tests(stress weir-static tests/stress/*_test.c)
    weir_tests(integration weir-static tests/integration/*_test.c)
    include(cmake/command_tests.cmake)
    if(NOT WEIR_SANITIZE MATCHES thread)
        weir_tests(sim weir-sim src/sim/*_test.c tests/sim/*_test.c)
        weir_tests(fuzz weir-sim tests/fuzz/*_test.c)
    endif()
else()
    message(STATUS "cmocka not found: only the smoke test and the examples will be built")
endif()

# Targets of the command for fuzzing: run by a driver of ours for a bounded count, or, with clang, by libFuzzer for as
# long as one likes.
file(GLOB fuzz_targets CONFIGURE_DEPENDS tests/fuzz/*_target.c)
if(NOT (SQLITE3_INCLUDE_DIR AND SQLITE3_LIBRARY))
    list(FILTER fuzz_targets EXCLUDE REGEX "/journal_target\\.c$")
endif()
if(NOT WEIR_HAS_REDIS)
    list(FILTER fuzz_targets EXCLUDE REGEX "/redis_[a-z]+_target\\.c$")
endif()
foreach(file ${fuzz_targets})
    get_filename_component(target ${file} NAME_WE)
    set(fuzz_library weir-cli)
    if(target MATCHES ^redis_)
        set(fuzz_library weir-redis-static)
    endif()
    weir_program(fuzz ${target} tests/fuzz ${file} ${fuzz_library})
    if(target MATCHES ^redis_)
        target_include_directories(${target} PRIVATE ${HIREDIS_INCLUDE_DIR})
    endif()
    target_include_directories(${target} PRIVATE src tests)
    if(SQLITE3_INCLUDE_DIR)
        target_include_directories(${target} PRIVATE ${SQLITE3_INCLUDE_DIR})
    endif()
    if(WEIR_LIBFUZZER)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${target} PRIVATE tests/fuzz/driver.c)
    endif()
endforeach()

file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(file ${examples})
    get_filename_component(name ${file} NAME_WE)
    weir_program(example example-${name} examples ${file} weir)
endforeach()

# The plots in docs/ are drawn by real guards on the simulated clock.
if(NOT WEIR_SANITIZE MATCHES thread)
    weir_program(sim guard-plots docs docs/plots/guards.c weir-sim)
    set_target_properties(guard-plots PROPERTIES OUTPUT_NAME guard-plots)
endif()

file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/tests.list CONTENT "${test_list}")
