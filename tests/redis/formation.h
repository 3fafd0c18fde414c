/* Servers that belong together: with certificates, as a cluster, under sentinels.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_FORMATION_H
#define WR_TESTS_REDIS_FORMATION_H

#include "redis/server.h"

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Certificates in a directory, made by openssl: of an authority, of a server "localhost" (and 127.0.0.1), of a client; and another
 * authority, which has signed nothing. */
struct certificates {
    char dir[64];
    char ca[96], other_ca[96];
    char server[96], server_key[96];
    char client[96], client_key[96];
};
void certificates_make(struct certificates *certificates);
void certificates_remove(struct certificates *certificates);

/* A server that speaks TLS on a port of its own, `tls_port`, besides its socket. `asks` whether clients must show a certificate. */
void server_start_tls(struct server *server, int *tls_port, const struct certificates *certificates,
                      bool asks);

/* ---- a cluster ------------------------------------------------------------------------------- */

enum { CLUSTER_MASTERS = 3 };

struct cluster {
    struct server masters[CLUSTER_MASTERS];
    struct server replica; /* of the first, if it was asked for */
    char url[128];         /* redis+cluster:// of all masters   */
};

/* Three masters with a third of the slots each; it answers when this returns. With a replica, the cluster does without the
 * first master after a second. */
void cluster_start(struct cluster *cluster, bool with_replica);
void cluster_stop(struct cluster *cluster);

/* Moves one slot, with nothing in it, to another master. */
void cluster_move_slot(struct cluster *cluster, int slot, int from, int to);

/* The identity of a node. */
void cluster_node_id(struct server *server, char id[41]);

/* ---- sentinels ------------------------------------------------------------------------------- */

enum { SENTINELS = 3 };

struct sentinels {
    struct server master, replica, sentinels[SENTINELS];
    char url[160]; /* redis+sentinel://.../main */
};

/* A master, a replica that is in step, and three sentinels that know them and each other. They need a second or two to
 * replace a master that is gone. */
void sentinels_start(struct sentinels *formation);

/* From now on the sentinels take no server for down, however long it is kept from running; a fail-over that has begun is
 * waited for. Answers the server that all of them have for the master, which is one. */
struct server *sentinels_rest(struct sentinels *formation);
void sentinels_stop(struct sentinels *formation);

#endif
