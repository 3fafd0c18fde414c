/* Certificates, clusters, sentinels. See formation.h.
 * SPDX-License-Identifier: MIT */
#include "redis/formation.h"

#include "support/check.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* Waits for servers to agree among themselves. */
#define SETTLE(condition)                                                            \
    for (weir_time settle_until_ = patience(); !(condition);                         \
         nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL)) {                \
        if (weir_now() > settle_until_) {                                            \
            fprintf(stderr, "%s:%d: in time: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                                \
        }                                                                            \
    }

/* ---- TLS ------------------------------------------------------------------------------------- */

static void make_authority(const char *certificate, const char *key)
{
    run_program((const char *[]){ "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                  "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                                  certificate, "-subj", "/CN=authority for tests", "-days", "2",
                                  NULL });
}

static void make_signed(const struct certificates *c, const char *certificate, const char *key)
{
    char request[96], names[96], ca_key[96];
    FILE *file;

    snprintf(request, sizeof(request), "%s/request", c->dir);
    snprintf(names, sizeof(names), "%s/names", c->dir);
    snprintf(ca_key, sizeof(ca_key), "%s/ca.key", c->dir);
    file = fopen(names, "w");
    fprintf(file, "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    fclose(file);
    run_program((const char *[]){ "openssl", "req", "-newkey", "ec", "-pkeyopt",
                                  "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                                  request, "-subj", "/CN=localhost", NULL });
    run_program((const char *[]){ "openssl", "x509", "-req", "-in", request, "-CA", c->ca, "-CAkey",
                                  ca_key, "-CAcreateserial", "-days", "2", "-extfile", names,
                                  "-out", certificate, NULL });
}

void certificates_make(struct certificates *c)
{
    char key[96];

    snprintf(c->dir, sizeof(c->dir), "/tmp/weir-certs-XXXXXX");
    assert_non_null(mkdtemp(c->dir));
    snprintf(c->ca, sizeof(c->ca), "%s/ca.crt", c->dir);
    snprintf(c->other_ca, sizeof(c->other_ca), "%s/other.crt", c->dir);
    snprintf(c->server, sizeof(c->server), "%s/server.crt", c->dir);
    snprintf(c->server_key, sizeof(c->server_key), "%s/server.key", c->dir);
    snprintf(c->client, sizeof(c->client), "%s/client.crt", c->dir);
    snprintf(c->client_key, sizeof(c->client_key), "%s/client.key", c->dir);
    snprintf(key, sizeof(key), "%s/ca.key", c->dir);
    make_authority(c->ca, key);
    snprintf(key, sizeof(key), "%s/other.key", c->dir);
    make_authority(c->other_ca, key);
    make_signed(c, c->server, c->server_key);
    make_signed(c, c->client, c->client_key);
}

void certificates_remove(struct certificates *c)
{
    run_program((const char *[]){ "rm", "-rf", c->dir, NULL });
}

void server_start_tls(struct server *server, int *tls_port, const struct certificates *c, bool asks)
{
    char port[16];
    const char *const extra[] = { "--tls-port",
                                  port,
                                  "--tls-cert-file",
                                  c->server,
                                  "--tls-key-file",
                                  c->server_key,
                                  "--tls-ca-cert-file",
                                  c->ca,
                                  "--tls-auth-clients",
                                  asks ? "yes" : "no",
                                  NULL };

    *tls_port = free_port();
    snprintf(port, sizeof(port), "%d", *tls_port);
    server_start(server, extra);
}

/* ---- a cluster ------------------------------------------------------------------------------- */

static void start_node(struct server *server)
{
    char bus[16];
    const char *const extra[] = {
        "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000", NULL
    };

    snprintf(bus, sizeof(bus), "%d", free_port());
    server_start(server, extra);
}

void cluster_node_id(struct server *server, char id[41])
{
    char *text = server_say(server, "CLUSTER MYID");

    snprintf(id, 41, "%s", text);
    free(text);
}

static const char *bus_of(const struct server *server)
{
    for (int i = 0; i + 1 < server->count; i++) {
        if (!strcmp(server->args[i], "--cluster-port"))
            return server->args[i + 1];
    }
    return "";
}

static void meet(struct server *server, const struct server *other)
{
    server_do(server, "CLUSTER MEET 127.0.0.1 %d %s", other->port, bus_of(other));
}

void cluster_start(struct cluster *cluster, bool with_replica)
{
    struct server *masters = cluster->masters;
    char id[41];

    memset(cluster, 0, sizeof(*cluster));
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        int first = 16384 * i / CLUSTER_MASTERS, last = 16384 * (i + 1) / CLUSTER_MASTERS - 1;
        start_node(&masters[i]);
        server_do(&masters[i], "CLUSTER ADDSLOTSRANGE %d %d", first, last);
        server_do(&masters[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
        if (i)
            meet(&masters[i], &masters[0]);
    }
    if (with_replica) {
        start_node(&cluster->replica);
        meet(&cluster->replica, &masters[0]);
        cluster_node_id(&masters[0], id);
        SETTLE(server_says(&cluster->replica, "CLUSTER NODES", id));
        server_do(&cluster->replica, "CLUSTER REPLICATE %s", id);
        SETTLE(server_says(&cluster->replica, "INFO replication", "master_link_status:up"));
        for (int i = 1; i < CLUSTER_MASTERS; i++) /* which must vote for it */
            SETTLE(server_says(&masters[i], "CLUSTER NODES", "slave"));
    }
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        SETTLE(server_says(&masters[i], "CLUSTER INFO", "cluster_state:ok"));
        SETTLE(server_says(&masters[i], "CLUSTER INFO", "cluster_slots_ok:16384"));
    }
    snprintf(cluster->url, sizeof(cluster->url), "redis+cluster://127.0.0.1:%d,127.0.0.1:%d",
             masters[0].port, masters[1].port);
}

void cluster_stop(struct cluster *cluster)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        server_stop(&cluster->masters[i]);
    server_stop(&cluster->replica);
}

/* A node that has imported a slot gets a new epoch with it. Without that its claim could be older than that of the former owner, which
 * tells the others of its slots at any time: then each of the two says that the other has it, for good. */
void cluster_move_slot(struct cluster *cluster, int slot, int from, int to)
{
    char id[41], from_id[41];

    cluster_node_id(&cluster->masters[to], id);
    cluster_node_id(&cluster->masters[from], from_id);
    server_do(&cluster->masters[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, from_id);
    server_do(&cluster->masters[to], "CLUSTER SETSLOT %d NODE %s", slot, id);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        server_do(&cluster->masters[i], "CLUSTER SETSLOT %d NODE %s", slot, id);
}

/* ---- sentinels ------------------------------------------------------------------------------- */

static void start_sentinel(struct server *server, int master_port)
{
    char path[128];
    FILE *file;

    server_prepare(server);
    snprintf(path, sizeof(path), "%s/sentinel.conf", server->dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "port %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\n"
            "sentinel monitor main 127.0.0.1 %d 2\n"
            "sentinel down-after-milliseconds main 400\n"
            "sentinel failover-timeout main 3000\n"
            "sentinel parallel-syncs main 1\n",
            server->port, server->socket, server->dir, master_port);
    fclose(file);
    server_word(server, server_program());
    server_word(server, path);
    server_word(server, "--sentinel");
    server_again(server);
}

void sentinels_start(struct sentinels *formation)
{
    char port[16];
    const char *const extra[] = { "--replicaof", "127.0.0.1", port, NULL };
    size_t used;

    memset(formation, 0, sizeof(*formation));
    server_start(&formation->master, NULL);
    snprintf(port, sizeof(port), "%d", formation->master.port);
    server_start(&formation->replica, extra);
    SETTLE(server_says(&formation->replica, "INFO replication", "master_link_status:up"));
    used = (size_t)snprintf(formation->url, sizeof(formation->url), "redis+sentinel://");
    for (int i = 0; i < SENTINELS; i++) {
        start_sentinel(&formation->sentinels[i], formation->master.port);
        used += (size_t)snprintf(formation->url + used, sizeof(formation->url) - used,
                                 "%s127.0.0.1:%d", i ? "," : "", formation->sentinels[i].port);
    }
    snprintf(formation->url + used, sizeof(formation->url) - used, "/main");
    for (int i = 0; i < SENTINELS; i++)
        SETTLE(server_says(&formation->sentinels[i], "INFO sentinel", "slaves=1,sentinels=3"));
}

/* Which port a sentinel has for the master; 0: it is about to change that, or to find out whether it must. */
static int settled_port(struct server *sentinel)
{
    redisContext *context = redisConnectUnix(sentinel->socket);
    redisReply *reply =
        context && !context->err ? redisCommand(context, "SENTINEL MASTER main") : NULL;
    bool settled = false;
    int port = 0;

    for (size_t i = 0; reply && i + 1 < reply->elements; i += 2) {
        const char *name = reply->element[i]->str, *value = reply->element[i + 1]->str;
        if (!strcmp(name, "port"))
            port = atoi(value);
        else if (!strcmp(name, "flags"))
            settled = !strcmp(value, "master"); /* and not ",s_down" or ",failover_in_progress" */
    }
    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return settled ? port : 0;
}

static bool agree_on(struct sentinels *formation, struct server *master)
{
    for (int i = 0; i < SENTINELS; i++)
        if (settled_port(&formation->sentinels[i]) != master->port)
            return false;
    return server_says(master, "INFO replication", "role:master");
}

struct server *sentinels_rest(struct sentinels *formation)
{
    for (int i = 0; i < SENTINELS; i++)
        free(server_say(&formation->sentinels[i],
                        "SENTINEL SET main down-after-milliseconds 3600000"));
    SETTLE(agree_on(formation, &formation->master) || agree_on(formation, &formation->replica));
    return agree_on(formation, &formation->master) ? &formation->master : &formation->replica;
}

void sentinels_stop(struct sentinels *formation)
{
    for (int i = 0; i < SENTINELS; i++)
        server_stop(&formation->sentinels[i]);
    server_stop(&formation->replica);
    server_stop(&formation->master);
}
