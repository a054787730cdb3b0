/* Digits drawn from strokes: a glyph of cubic Béziers, bent by a smooth random field (elastic), placed by a random affine map,
 * inked with a round pen, and covered with noise. Each image has its own random stream, so an image does not depend on how many
 * there are or on threads. Only + - * / and sqrt are used, which IEEE 754 rounds exactly: every machine draws the same bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "threads.h"
#include "hash.h"
#include "train/model.h"

enum { MOST_STROKES = 5, PIECES = 10, LATTICE = 4, CHUNK = 256 };

typedef struct point {
  double x, y;
} point;

typedef struct stroke { /* cubic Bézier in the unit square, y down */
  point p[4];
} stroke;

typedef struct glyph {
  uint8_t digit, strokes;
  stroke s[MOST_STROKES];
} glyph;

/* clang-format off */
#define LINE(x0, y0, x1, y1) {{{x0, y0}, {(2 * (x0) + (x1)) / 3., (2 * (y0) + (y1)) / 3.}, \
                               {((x0) + 2 * (x1)) / 3., ((y0) + 2 * (y1)) / 3.}, {x1, y1}}}
#define CURVE(x0, y0, x1, y1, x2, y2, x3, y3) {{{x0, y0}, {x1, y1}, {x2, y2}, {x3, y3}}}

static const glyph glyphs[] = {
    {0, 4, {CURVE(.50, .08, .68, .08, .80, .27, .80, .50), CURVE(.80, .50, .80, .73, .68, .92, .50, .92),
            CURVE(.50, .92, .32, .92, .20, .73, .20, .50), CURVE(.20, .50, .20, .27, .32, .08, .50, .08)}},
    {0, 3, {CURVE(.58, .10, .30, .02, .18, .40, .24, .66), CURVE(.24, .66, .30, .98, .66, .98, .76, .62),
            CURVE(.76, .62, .84, .30, .70, .08, .46, .14)}},
    {1, 1, {LINE(.50, .08, .50, .92)}},
    {1, 2, {LINE(.34, .28, .52, .09), LINE(.52, .09, .52, .92)}},
    {1, 3, {LINE(.34, .26, .52, .09), LINE(.52, .09, .52, .90), LINE(.32, .91, .72, .91)}},
    {2, 3, {CURVE(.24, .30, .26, .02, .76, .02, .74, .32), CURVE(.74, .32, .72, .52, .44, .68, .24, .90),
            LINE(.24, .90, .80, .90)}},
    {2, 3, {CURVE(.26, .24, .36, .02, .76, .06, .72, .34), CURVE(.72, .34, .66, .62, .40, .96, .26, .84),
            CURVE(.26, .84, .22, .68, .56, .92, .82, .84)}},
    {3, 2, {CURVE(.26, .16, .50, .00, .92, .22, .46, .46), CURVE(.46, .46, .96, .48, .84, 1.04, .24, .86)}},
    {3, 3, {LINE(.26, .11, .74, .11), LINE(.74, .11, .46, .42), CURVE(.46, .42, .96, .44, .86, 1.04, .24, .86)}},
    {4, 3, {LINE(.34, .10, .24, .54), LINE(.24, .54, .80, .54), LINE(.68, .12, .62, .92)}},
    {4, 3, {LINE(.64, .10, .20, .64), LINE(.20, .64, .82, .64), LINE(.64, .10, .64, .92)}},
    {4, 3, {CURVE(.28, .12, .18, .48, .26, .60, .46, .56), CURVE(.46, .56, .62, .54, .70, .40, .72, .12),
            LINE(.72, .12, .66, .94)}},
    {5, 4, {LINE(.74, .11, .36, .11), LINE(.36, .11, .32, .46), CURVE(.32, .46, .50, .34, .82, .42, .78, .68),
            CURVE(.78, .68, .74, .98, .36, .94, .22, .82)}},
    {5, 3, {CURVE(.76, .10, .60, .14, .44, .12, .36, .12), CURVE(.36, .12, .30, .46, .34, .44, .50, .46),
            CURVE(.50, .46, .88, .52, .76, 1.00, .24, .88)}},
    {6, 3, {CURVE(.68, .10, .42, .18, .24, .48, .26, .70), CURVE(.26, .70, .30, .98, .74, .96, .74, .70),
            CURVE(.74, .70, .72, .44, .38, .44, .28, .68)}},
    {6, 3, {CURVE(.44, .08, .30, .30, .22, .60, .30, .82), CURVE(.30, .82, .44, 1.00, .80, .84, .68, .64),
            CURVE(.68, .64, .58, .50, .36, .60, .30, .78)}},
    {7, 2, {LINE(.22, .13, .78, .13), CURVE(.78, .13, .62, .42, .50, .62, .44, .92)}},
    {7, 3, {LINE(.22, .13, .78, .13), LINE(.78, .13, .42, .92), LINE(.40, .52, .74, .52)}},
    {7, 3, {LINE(.24, .28, .24, .13), LINE(.24, .13, .76, .13), CURVE(.76, .13, .70, .40, .52, .60, .50, .92)}},
    {8, 4, {CURVE(.68, .24, .62, .02, .26, .06, .30, .28), CURVE(.30, .28, .34, .48, .76, .50, .74, .74),
            CURVE(.74, .74, .70, .98, .26, .96, .26, .72), CURVE(.26, .72, .28, .48, .72, .46, .68, .24)}},
    {8, 4, {CURVE(.50, .08, .78, .08, .78, .46, .50, .46), CURVE(.50, .46, .22, .46, .22, .08, .50, .08),
            CURVE(.50, .46, .86, .46, .86, .92, .50, .92), CURVE(.50, .92, .14, .92, .14, .46, .50, .46)}},
    {9, 3, {CURVE(.72, .30, .68, .02, .26, .04, .27, .30), CURVE(.27, .30, .28, .56, .66, .56, .72, .30),
            LINE(.72, .30, .66, .92)}},
    {9, 3, {CURVE(.70, .26, .60, .02, .24, .10, .28, .34), CURVE(.28, .34, .34, .56, .68, .50, .70, .26),
            CURVE(.70, .26, .80, .60, .70, .96, .30, .88)}},
};
/* clang-format on */
enum { GLYPHS = sizeof glyphs / sizeof *glyphs };

typedef struct chance {
  uint64_t key, count;
} chance;

static double uniform(chance *r, double low, double high) {
  return low + (high - low) * ((double)(rl_hash64(r->key + r->count++) >> 11) * 0x1p-53);
}

/* Irwin–Hall: the sum of four uniforms, scaled to unit variance. */
static double normal(chance *r) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += uniform(r, -0.5, 0.5);
  return sum * 1.7320508075688772;
}

static point cubic(const stroke *s, double t) {
  double u = 1 - t, a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t, d = t * t * t;
  return (point){a * s->p[0].x + b * s->p[1].x + c * s->p[2].x + d * s->p[3].x,
                 a * s->p[0].y + b * s->p[1].y + c * s->p[2].y + d * s->p[3].y};
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* The elastic field: uniform cubic B-spline over a lattice of random displacements, which lies over the unit square. */
static point bend(const point lattice[LATTICE][LATTICE], point at) {
  double weight[2][4];
  for (int axis = 0; axis < 2; axis++) {
    double t = clamp(axis ? at.y : at.x, 0, 1), u = 1 - t;
    weight[axis][0] = u * u * u / 6;
    weight[axis][1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    weight[axis][2] = (3 * u * u * u - 6 * u * u + 4) / 6;
    weight[axis][3] = t * t * t / 6;
  }
  for (int i = 0; i < LATTICE; i++)
    for (int j = 0; j < LATTICE; j++) {
      at.x += weight[1][i] * weight[0][j] * lattice[i][j].x;
      at.y += weight[1][i] * weight[0][j] * lattice[i][j].y;
    }
  return at;
}

typedef struct placement { /* pixel = m · (p - centre) + t */
  double m[4];
  point t;
} placement;

static placement place(chance *r) {
  /* A rotation by the angle whose half has the tangent t: up to about 20 degrees. */
  double t = uniform(r, -0.18, 0.18), cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
  double width = uniform(r, 15, 24), height = uniform(r, 17, 25), shear = uniform(r, -0.35, 0.35);
  double x = 14 + uniform(r, -2.5, 2.5), y = 14 + uniform(r, -2.5, 2.5);
  return (placement){.m = {cosine * width, (cosine * -shear - sine) * height, sine * width, (sine * -shear + cosine) * height},
                     .t = {x, y}};
}

static point put(const placement *place, point p) {
  p.x -= 0.5;
  p.y -= 0.5;
  return (point){place->m[0] * p.x + place->m[1] * p.y + place->t.x, place->m[2] * p.x + place->m[3] * p.y + place->t.y};
}

/* Ink the segment with a round pen: coverage falls from 1 to 0 within a pixel of the pen's edge; strokes don't add up. */
static void ink(float canvas[RL_IMAGE][RL_IMAGE], point a, point b, double radius) {
  double reach = radius + 0.5, dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
  int left = (int)clamp(fmin(a.x, b.x) - reach, 0, RL_IMAGE), right = (int)clamp(fmax(a.x, b.x) + reach + 1, 0, RL_IMAGE);
  int top = (int)clamp(fmin(a.y, b.y) - reach, 0, RL_IMAGE), bottom = (int)clamp(fmax(a.y, b.y) + reach + 1, 0, RL_IMAGE);
  for (int y = top; y < bottom; y++)
    for (int x = left; x < right; x++) {
      double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
      double along = squared > 0 ? clamp((px * dx + py * dy) / squared, 0, 1) : 0;
      double ex = px - along * dx, ey = py - along * dy;
      float cover = (float)clamp(reach - sqrt(ex * ex + ey * ey), 0, 1);
      if (cover > canvas[y][x]) canvas[y][x] = cover;
    }
}

static const glyph *choose(chance *r, uint8_t digit) {
  const glyph *styles[GLYPHS];
  int count = 0;
  for (int i = 0; i < GLYPHS; i++)
    if (glyphs[i].digit == digit) styles[count++] = &glyphs[i];
  return styles[(int)uniform(r, 0, count)];
}

static void draw(chance *r, uint8_t digit, uint8_t *pixels) {
  float canvas[RL_IMAGE][RL_IMAGE] = {{0}};
  point lattice[LATTICE][LATTICE];
  for (int i = 0; i < LATTICE * LATTICE; i++) {
    lattice[i / LATTICE][i % LATTICE].x = 0.11 * normal(r);
    lattice[i / LATTICE][i % LATTICE].y = 0.11 * normal(r);
  }
  const glyph *shape = choose(r, digit);
  placement where = place(r);
  double radius = uniform(r, 0.6, 1.9);
  for (int i = 0; i < shape->strokes; i++) {
    stroke s = shape->s[i];
    point before = put(&where, bend(lattice, s.p[0]));
    for (int piece = 1; piece <= PIECES; piece++) {
      point now = put(&where, bend(lattice, cubic(&s, piece / (double)PIECES)));
      ink(canvas, before, now, radius);
      before = now;
    }
  }
  double contrast = uniform(r, 0.55, 1), grain = uniform(r, 0, 0.12);
  for (int i = 0; i < RL_PIXELS; i++) {
    double value = contrast * canvas[i / RL_IMAGE][i % RL_IMAGE] + grain * normal(r);
    pixels[i] = (uint8_t)(clamp(value, 0, 1) * 255 + 0.5);
  }
}

typedef struct sheet { /* one of the two sets */
  uint64_t key;
  uint32_t count;
  uint8_t *images, *labels;
} sheet;

static void draw_chunk(void *context, uint32_t chunk, uint32_t thread) {
  (void)thread;
  const sheet *set = context;
  for (uint32_t i = chunk * CHUNK; i < set->count && i < (chunk + 1) * CHUNK; i++) {
    chance r = {.key = rl_hash64(set->key + i)};
    set->labels[i] = (uint8_t)uniform(&r, 0, RL_CLASSES);
    draw(&r, set->labels[i], set->images + (size_t)i * RL_PIXELS);
  }
}

int rl_synthetic_render(uint64_t seed, uint32_t train_count, uint32_t test_count, rl_dataset *dataset, rl_error *err) {
  rl_auto(rl_threads_auto) rl_threads *threads = rl_threads_open(0, err);
  if (threads == NULL) return -1;
  rl_dataset made = {.train_count = train_count, .test_count = test_count, .name = "synthetic"};
  made.train_images = malloc((size_t)train_count * RL_PIXELS + 1);
  made.train_labels = malloc((size_t)train_count + 1);
  made.test_images = malloc((size_t)test_count * RL_PIXELS + 1);
  made.test_labels = malloc((size_t)test_count + 1);
  if (made.train_images == NULL || made.train_labels == NULL || made.test_images == NULL || made.test_labels == NULL) {
    rl_dataset_free(&made);
    return rl_fail_errno(err, "memory for %u synthetic digits", train_count + test_count);
  }
  sheet sheets[2] = {{rl_hash64(seed), train_count, made.train_images, made.train_labels},
                     {rl_hash64(~seed), test_count, made.test_images, made.test_labels}};
  for (int i = 0; i < 2; i++) rl_threads_run(threads, (sheets[i].count + CHUNK - 1) / CHUNK, draw_chunk, &sheets[i]);
  *dataset = made;
  return 0;
}
