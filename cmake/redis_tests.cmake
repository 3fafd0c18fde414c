# Tests of libweir-redis, and what starts servers for them.
# SPDX-License-Identifier: MIT
if(NOT WEIR_HAS_REDIS)
    return()
endif()

# Starting and stopping servers; speaks to them by hiredis' own connections, not by the code under test.
add_library(redis-support STATIC tests/redis/server.c tests/redis/formation.c)
target_include_directories(redis-support PUBLIC ${HIREDIS_INCLUDE_DIR}
    PRIVATE tests include ${CMOCKA_INCLUDE_DIR})
target_link_libraries(redis-support PUBLIC ${HIREDIS_LIBRARY})

weir_tests(unit weir-redis-static src/redis/*_test.c)
weir_tests(redis "weir-redis-static;redis-support" tests/redis/*_test.c)
