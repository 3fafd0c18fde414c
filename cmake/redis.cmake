# libweir-redis: guards of a fleet. Needs hiredis (0.14 or 1.x) and OpenSSL; without them all else is built.
# SPDX-License-Identifier: MIT

find_path(HIREDIS_INCLUDE_DIR hiredis/read.h)
find_library(HIREDIS_LIBRARY hiredis)
mark_as_advanced(HIREDIS_INCLUDE_DIR HIREDIS_LIBRARY)
find_package(OpenSSL 1.1.1 QUIET)

set(WEIR_HAS_REDIS OFF)
if(HIREDIS_INCLUDE_DIR AND HIREDIS_LIBRARY AND OPENSSL_FOUND)
    set(WEIR_HAS_REDIS ON)
else()
    message(STATUS "hiredis or OpenSSL not found: libweir-redis will be neither built nor tested")
    return()
endif()

weir_sources(redis_sources src/redis)

# The scripts become texts in the library: common.lua first, then the script.
set(scripts_c ${PROJECT_BINARY_DIR}/redis_scripts.c)
set(scripts_dir ${PROJECT_SOURCE_DIR}/src/redis/scripts)
file(GLOB script_files CONFIGURE_DEPENDS ${scripts_dir}/*.lua)
add_custom_command(OUTPUT ${scripts_c} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DSCRIPTS=${scripts_dir} -DOUT=${scripts_c}
        -P ${PROJECT_SOURCE_DIR}/cmake/scripts.cmake
    DEPENDS ${script_files} cmake/scripts.cmake)
list(APPEND redis_sources ${scripts_c})

# A library beside libweir.so sees only what that exports, so it brings the few things of src/base that it uses: pure
# sums and the door to the kernel, none of which keeps anything that the two would have to share.
weir_sources(base_sources src/base)
add_library(weir-base STATIC ${base_sources})
target_include_directories(weir-base PRIVATE include src)

add_library(weir-redis-core OBJECT ${redis_sources})
target_include_directories(weir-redis-core PRIVATE include src ${HIREDIS_INCLUDE_DIR})
target_link_libraries(weir-redis-core PRIVATE OpenSSL::SSL Threads::Threads)

# libweir.so comes first: what it exports of src/base is taken from there.
add_library(weir-redis SHARED $<TARGET_OBJECTS:weir-redis-core>)
target_link_libraries(weir-redis PUBLIC weir
    PRIVATE weir-base ${HIREDIS_LIBRARY} OpenSSL::SSL Threads::Threads)
target_link_options(weir-redis PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/weir-redis.map)
set_target_properties(weir-redis PROPERTIES LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${so_version}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/weir-redis.map)

add_library(weir-redis-static STATIC $<TARGET_OBJECTS:weir-redis-core>)
target_link_libraries(weir-redis-static PUBLIC weir-static
    PRIVATE ${HIREDIS_LIBRARY} OpenSSL::SSL Threads::Threads)
set_target_properties(weir-redis-static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME weir-redis)

foreach(target weir-redis weir-redis-static)
    target_include_directories(${target}
        PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    add_library(weir::${target} ALIAS ${target})
endforeach()
weir_harden(weir-base weir-redis-core weir-redis)
