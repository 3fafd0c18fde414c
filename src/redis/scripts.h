/* The scripts of src/redis/scripts, as the build puts them into the library: common.lua, then the script.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_SCRIPTS_H
#define WR_REDIS_SCRIPTS_H

extern const char wr_lua_open[], wr_lua_permits[], wr_lua_rate[], wr_lua_window[], wr_lua_compat[];

#endif
