# Tests of libweir-redis, and what starts servers for them.
# SPDX-License-Identifier: MIT
if(NOT WEIR_HAS_REDIS)
    return()
endif()

# Starting and stopping servers; speaks to them by hiredis' own connections, not by the code under test.
add_library(redis-support STATIC tests/redis/server.c tests/redis/formation.c tests/redis/relay.c
    tests/redis/witness.c)
target_include_directories(redis-support PUBLIC ${HIREDIS_INCLUDE_DIR}
    PRIVATE tests include ${CMOCKA_INCLUDE_DIR})
target_link_libraries(redis-support PUBLIC ${HIREDIS_LIBRARY})

# A process of a fleet, for tests to kill.
add_executable(redis-holder tests/redis/holder.c)
target_link_libraries(redis-holder PRIVATE weir-redis-static)

weir_tests(unit weir-redis-static src/redis/*_test.c)
weir_tests(redis "weir-redis-static;redis-support" tests/redis/*_test.c)
weir_tests(chaos "weir-redis-static;redis-support" tests/redis/*_chaos_test.c)
if(TARGET model_test)
    target_sources(model_test PRIVATE tests/redis/sim/model_server.c)
endif()

# The half of the library that keeps limits, in the simulator: a model stands for the server, and for the client's connections.
if(NOT WEIR_SANITIZE MATCHES thread)
    set(fleet_sources ${redis_sources})
    list(FILTER fleet_sources EXCLUDE REGEX
        "/(client|cluster|conn|ear|job|link|link_io|link_life|sentinel|socket|tls)\\.c$")
    add_library(weir-redis-sim STATIC ${fleet_sources} tests/redis/sim/model_client.c
        tests/redis/sim/model_server.c)
    target_include_directories(weir-redis-sim PRIVATE include src tests ${HIREDIS_INCLUDE_DIR})
    target_link_libraries(weir-redis-sim PUBLIC weir-sim
        PRIVATE ${HIREDIS_LIBRARY} OpenSSL::SSL)
    weir_tests(sim weir-redis-sim tests/redis/sim/*_test.c)
endif()

get_property(redis_programs DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
list(FILTER redis_programs INCLUDE REGEX "^fleet_.*_test$")
foreach(target ${redis_programs})
    add_dependencies(${target} redis-holder)
    target_compile_definitions(${target} PRIVATE HOLDER="$<TARGET_FILE:redis-holder>"
        WEIR_SOURCE="${PROJECT_SOURCE_DIR}")
endforeach()
