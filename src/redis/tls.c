/* TLS between the wire and the socket: OpenSSL on memory only, so that a caller that waits for bytes parks as usual.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "redis/conn.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <weir/error.h>

struct wr_tls_context {
    SSL_CTX *ssl;
    char *name; /* the name to expect in the certificate; NULL: the host */
    bool unverified;
};

struct wr_tls {
    SSL *ssl;      /* owns both: */
    BIO *in, *out; /* bytes that came, and bytes that are to be sent */
};

/* The latest error of OpenSSL on this thread. Clears it, so that later calls do not see it. */
static const char *reason(char *text, size_t size)
{
    unsigned long code = ERR_get_error();
    const char *words = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    if (words)
        return words;
    ERR_error_string_n(code, text, size);
    return text;
}

/* ---- shared by all connections of a client ----------------------------------------------------- */

static int load_files(SSL_CTX *ssl, const weir_redis_options *opt, weir_message *message)
{
    const char *key = opt->tls_key ? opt->tls_key : opt->tls_cert;
    char text[256];

    if (opt->tls_ca && SSL_CTX_load_verify_locations(ssl, opt->tls_ca, NULL) != 1)
        return wr_redis_fail(WEIR_EINVAL, message, "tls_ca: %s: %s", opt->tls_ca,
                             reason(text, sizeof(text)));
    if (!opt->tls_ca && SSL_CTX_set_default_verify_paths(ssl) != 1)
        return wr_redis_fail(WEIR_EINVAL, message, "the system's certificates: %s",
                             reason(text, sizeof(text)));
    if (opt->tls_cert && SSL_CTX_use_certificate_chain_file(ssl, opt->tls_cert) != 1)
        return wr_redis_fail(WEIR_EINVAL, message, "tls_cert: %s: %s", opt->tls_cert,
                             reason(text, sizeof(text)));
    if (key && (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1 ||
                SSL_CTX_check_private_key(ssl) != 1))
        return wr_redis_fail(WEIR_EINVAL, message, "tls_key: %s: %s", key,
                             reason(text, sizeof(text)));
    return 0;
}

int wr_tls_context_new(struct wr_tls_context **out, const weir_redis_options *opt,
                       weir_message *message)
{
    struct wr_tls_context *context = wr_os_alloc(sizeof(*context));
    int rc = WEIR_ENOMEM;

    if (!context)
        return rc;
    context->unverified = opt->tls_unverified;
    context->ssl = SSL_CTX_new(TLS_client_method());
    if (opt->tls_name)
        context->name = wr_text_copy(opt->tls_name, strlen(opt->tls_name));
    if (context->ssl && (context->name || !opt->tls_name)) {
        SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
        SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_verify(context->ssl, opt->tls_unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                           NULL);
        rc = load_files(context->ssl, opt, message);
    }
    if (rc)
        wr_tls_context_free(context);
    else
        *out = context;
    return rc;
}

void wr_tls_context_free(struct wr_tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    wr_os_free(context->name);
    wr_os_free(context);
}

/* ---- one connection ------------------------------------------------------------------------------ */

static bool is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Sets the server name to ask for, and the name or address that the certificate must have. */
static bool expect(SSL *ssl, const char *host, bool unverified)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (is_address(host))
        return unverified || X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    if (SSL_set_tlsext_host_name(ssl, host) != 1)
        return false;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return unverified || X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

int wr_tls_new(struct wr_tls **out, struct wr_tls_context *context, const char *host)
{
    struct wr_tls *tls = wr_os_alloc(sizeof(*tls));

    if (!tls)
        return WEIR_ENOMEM;
    tls->ssl = SSL_new(context->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out ||
        !expect(tls->ssl, context->name ? context->name : host, context->unverified)) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        SSL_free(tls->ssl);
        wr_os_free(tls);
        ERR_clear_error();
        return WEIR_ENOMEM;
    }
    BIO_set_mem_eof_return(tls->in, -1); /* empty is "not yet", not the end */
    BIO_set_mem_eof_return(tls->out, -1);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    *out = tls;
    return 0;
}

void wr_tls_free(struct wr_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    wr_os_free(tls);
}

int wr_tls_handshake(struct wr_tls *tls, weir_message *message)
{
    char text[256];
    int done = SSL_do_handshake(tls->ssl), why;
    long verdict;

    if (done == 1)
        return 1;
    why = SSL_get_error(tls->ssl, done);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        ERR_clear_error();
        return 0;
    }
    verdict = SSL_get_verify_result(tls->ssl);
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return wr_redis_fail(WEIR_EAWAY, message, "TLS: the server's certificate: %s",
                             X509_verify_cert_error_string(verdict));
    }
    return wr_redis_fail(WEIR_EAWAY, message, "TLS: %s", reason(text, sizeof(text)));
}

int wr_tls_encrypt(struct wr_tls *tls, const char *plain, size_t size)
{
    const size_t piece_max = 1 << 20;

    while (size) {
        size_t piece = size < piece_max ? size : piece_max;
        int n = SSL_write(tls->ssl, plain, (int)piece);
        if (n <= 0) { /* memory takes all there is: only a broken connection refuses */
            ERR_clear_error();
            return WEIR_ELOST;
        }
        plain += n;
        size -= (size_t)n;
    }
    return 0;
}

int wr_tls_take(struct wr_tls *tls, struct wr_bytes *out)
{
    char *data;
    long size = BIO_get_mem_data(tls->out, &data);
    int rc = size > 0 ? wr_bytes_append(out, data, (size_t)size) : 0;

    if (!rc && size > 0)
        (void)BIO_reset(tls->out);
    return rc;
}

int wr_tls_put(struct wr_tls *tls, const char *data, size_t size)
{
    return BIO_write(tls->in, data, (int)size) == (int)size ? 0 : WEIR_ENOMEM;
}

int wr_tls_decrypt(struct wr_tls *tls, char *plain, size_t size, weir_message *message)
{
    char text[256];
    int n = SSL_read(tls->ssl, plain, (int)size), why;

    if (n > 0)
        return n;
    why = SSL_get_error(tls->ssl, n);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        ERR_clear_error();
        return 0;
    }
    if (why == SSL_ERROR_ZERO_RETURN)
        return wr_redis_fail(WEIR_ELOST, message, "the server closed the connection");
    return wr_redis_fail(WEIR_ELOST, message, "TLS: %s", reason(text, sizeof(text)));
}
