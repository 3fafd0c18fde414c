/* What is shown while we run: a display, plain lines, or nothing; and when it is drawn.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/show.h"

#include "cli/engine/printer.h"

#include <stdlib.h>
#include <unistd.h>

int show_open(struct show *show, struct engine *engine)
{
    enum progress_mode mode = engine->opt->progress;
    bool always = mode == PROGRESS_ALWAYS;

    *show = (struct show){ .engine = engine, .film = { .began = weir_now() } };
    show->film.seen_at = show->film.began;
    if (mode == PROGRESS_NEVER)
        return 0;
    /* A user who types records into the terminal needs its echo and its lines. */
    show->live = term_is_live(2) && !engine->opt->typed_input;
    show->plain = !show->live && always;
    show->period_ns = (show->live ? 100 : 1000) * INT64_C(1000000);
    /* Not at once: a run may be over before. With --progress always there is a line in any case. */
    show->next = show->film.began + (show->live ? show->period_ns / 2 : show->period_ns);
    return show->live ? term_open(&show->term, 2) : 0;
}

static size_t rows_of(const struct show *show)
{
    int rows = show->live ? show->term.look.height - 4 : 0;

    return rows < 1 ? 1 : rows > PICTURE_ROWS_MAX ? PICTURE_ROWS_MAX : (size_t)rows;
}

static void draw(struct show *show, const struct view *view)
{
    ssize_t n;

    if (show->live) {
        view_render(&show->text, view, &show->term.look);
        if (printer_in_line(show->engine->printer)) {
            if (printer_is_amid(show->engine->printer))
                return; /* the rest of the line comes */
            n = write(show->term.fd, "\n", 1);
            (void)n;
            printer_line_ended(show->engine->printer);
        }
        term_draw(&show->term, &show->text);
        return;
    }
    view_render_plain(&show->text, view);
    if (show->closing)
        fwrite(show->text.text, 1, show->text.length, stderr);
    else
        printer_text(show->engine->printer, 2, show->text.text, show->text.length);
}

/* With --progress always there is a line at the end as well. */
static bool last_line(const struct show *show)
{
    return show->closing && show->engine->opt->progress == PROGRESS_ALWAYS;
}

void show_update(struct show *show, bool regardless, const char *phase)
{
    weir_time now = weir_now();
    struct picture_wish wish = { .rows = rows_of(show),
                                 .last = show->closing,
                                 .why = show->with_why };
    struct picture *picture;

    if (!show->live && !show->plain)
        return;
    if (now < show->next && !(regardless && show->live) && !last_line(show))
        return;
    show->next = now + show->period_ns;
    picture = picture_new(show->engine, &show->film, &wish, now, phase);
    if (!picture)
        return;
    draw(show, picture_view(picture));
    picture_free(picture);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

void show_make_way(struct show *show)
{
    if (show->live)
        term_clear(&show->term);
}

void show_key(struct show *show, int key)
{
    if (key == 'w' || key == 'W')
        show->with_why = !show->with_why;
}

void show_close(struct show *show)
{
    show->closing = true;
    show->with_why = false;
    show->term.look.keys = false;
    show_update(show, true, NULL);
    if (show->live)
        term_close(&show->term);
    free(show->text.text);
}
