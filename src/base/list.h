/* Intrusive lists: a circular doubly linked one, of which an unlinked node points to itself, and a queue by one pointer.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_LIST_H
#define WR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wr_list {
    struct wr_list *next;
    struct wr_list *prev;
};

static inline void wr_list_init(struct wr_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool wr_list_empty(const struct wr_list *list)
{
    return list->next == list;
}

/* Puts `node`, which must be unlinked or fresh, last. */
static inline void wr_list_append(struct wr_list *list, struct wr_list *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

/* Takes `node` out of whatever list it is in; harmless if it is in none. */
static inline void wr_list_remove(struct wr_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    wr_list_init(node);
}

/* Moves all of `from` to the end of `to`. */
static inline void wr_list_splice(struct wr_list *to, struct wr_list *from)
{
    if (wr_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    wr_list_init(from);
}

#define wr_list_each(node, list) \
    for (struct wr_list *node = (list)->next; node != (list); node = node->next)

/* The same, while the body may remove `node`. */
#define wr_list_each_safe(node, list)                                                    \
    for (struct wr_list *node = (list)->next, *node##_next = node->next; node != (list); \
         node = node##_next, node##_next = node->next)

/* First in, first out. Zero is empty. */
struct wr_fifo_node {
    struct wr_fifo_node *next;
};

struct wr_fifo {
    struct wr_fifo_node *first, *last; /* last: only while there is a first */
};

static inline void wr_fifo_append(struct wr_fifo *fifo, struct wr_fifo_node *node)
{
    node->next = NULL;
    if (fifo->first)
        fifo->last->next = node;
    else
        fifo->first = node;
    fifo->last = node;
}

/* Takes the first one out; NULL: it is empty. */
static inline struct wr_fifo_node *wr_fifo_take(struct wr_fifo *fifo)
{
    struct wr_fifo_node *node = fifo->first;

    if (node)
        fifo->first = node->next;
    return node;
}

#endif
