/* The stores as other rooms see them: what is always there.
 * SPDX-License-Identifier: MIT */
#ifndef WR_STORE_STORE_H
#define WR_STORE_STORE_H

#include <weir/sys/store.h>

/* The store of this process that needs no making. */
weir_store *wr_store_default(void);

#endif
