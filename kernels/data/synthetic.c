/* Renders digits from strokes, which are cubic Bézier curves. They are displaced by a smooth random field, mapped to pixels by a
 * random affine map and drawn with a round pen; then noise is added. Each image has a separate sequence of random numbers, so it
 * depends neither on the number of images nor on the number of threads. The arithmetic uses only + - * / and sqrt, whose results
 * IEEE 754 determines exactly, so every machine renders the same bytes. */
#include "data/synthetic.h"

#include <math.h>

#include "hash.h"
#include "thread_pool.h"
#include "train/model.h"

enum { MAX_STROKES = 5, SEGMENTS_PER_STROKE = 10, LATTICE_SIDE = 4, CHUNK_IMAGES = 256 };

typedef struct point {
  double x, y;
} point;

typedef struct stroke { /* cubic Bézier in the unit square, y axis downwards */
  point control[4];
} stroke;

typedef struct glyph { /* one way to write a digit */
  uint8_t digit, stroke_count;
  stroke strokes[MAX_STROKES];
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

typedef struct random_sequence {
  uint64_t key, position;
} random_sequence;

static double uniform(random_sequence *random, double low, double high) {
  return low + (high - low) * ((double)(rl_hash64(random->key + random->position++) >> 11) * 0x1p-53);
}

/* Returns an approximately normal number with mean 0 and variance 1: the scaled sum of four uniform numbers (Irwin–Hall). */
static double normal(random_sequence *random) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += uniform(random, -0.5, 0.5);
  return sum * 1.7320508075688772;
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static point bezier_point(const stroke *s, double t) {
  double u = 1 - t, a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t, d = t * t * t;
  const point *p = s->control;
  return (point){a * p[0].x + b * p[1].x + c * p[2].x + d * p[3].x, a * p[0].y + b * p[1].y + c * p[2].y + d * p[3].y};
}

/* A smooth random field: random displacements on a lattice over the unit square, interpolated by a uniform cubic B-spline. */
typedef struct elastic_field {
  point displacement[LATTICE_SIDE][LATTICE_SIDE];
} elastic_field;

static elastic_field random_elastic_field(random_sequence *random) {
  elastic_field field;
  for (int i = 0; i < LATTICE_SIDE * LATTICE_SIDE; i++) {
    field.displacement[i / LATTICE_SIDE][i % LATTICE_SIDE].x = 0.11 * normal(random);
    field.displacement[i / LATTICE_SIDE][i % LATTICE_SIDE].y = 0.11 * normal(random);
  }
  return field;
}

static void spline_weights(double position, double weights[4]) {
  double t = clamp(position, 0, 1), u = 1 - t;
  weights[0] = u * u * u / 6;
  weights[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
  weights[2] = (3 * u * u * u - 6 * u * u + 4) / 6;
  weights[3] = t * t * t / 6;
}

static point displace(const elastic_field *field, point p) {
  double across[4], down[4];
  spline_weights(p.x, across);
  spline_weights(p.y, down);
  for (int i = 0; i < LATTICE_SIDE; i++)
    for (int j = 0; j < LATTICE_SIDE; j++) {
      p.x += down[i] * across[j] * field->displacement[i][j].x;
      p.y += down[i] * across[j] * field->displacement[i][j].y;
    }
  return p;
}

typedef struct affine_map { /* pixel = matrix · (p − (0.5, 0.5)) + offset */
  double matrix[4];
  point offset;
} affine_map;

static affine_map random_affine_map(random_sequence *random) {
  /* t: tangent of half the rotation angle. The angle is within ±20.4 degrees. */
  double t = uniform(random, -0.18, 0.18), cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
  double width = uniform(random, 15, 24), height = uniform(random, 17, 25), shear = uniform(random, -0.35, 0.35);
  double x = 14 + uniform(random, -2.5, 2.5), y = 14 + uniform(random, -2.5, 2.5);
  return (affine_map){
      .matrix = {cosine * width, (cosine * -shear - sine) * height, sine * width, (sine * -shear + cosine) * height},
      .offset = {x, y}};
}

static point apply_map(const affine_map *map, point p) {
  const double *m = map->matrix;
  p.x -= 0.5;
  p.y -= 0.5;
  return (point){m[0] * p.x + m[1] * p.y + map->offset.x, m[2] * p.x + m[3] * p.y + map->offset.y};
}

/* Draws the line segment from a to b with a round pen. At the pen's edge, coverage falls from 1 to 0 over one pixel. A pixel
 * keeps the highest coverage of all segments. */
static void draw_segment(float canvas[RL_IMAGE_SIDE][RL_IMAGE_SIDE], point a, point b, double radius) {
  double reach = radius + 0.5, dx = b.x - a.x, dy = b.y - a.y, squared_length = dx * dx + dy * dy;
  int left = (int)clamp(fmin(a.x, b.x) - reach, 0, RL_IMAGE_SIDE),
      right = (int)clamp(fmax(a.x, b.x) + reach + 1, 0, RL_IMAGE_SIDE);
  int top = (int)clamp(fmin(a.y, b.y) - reach, 0, RL_IMAGE_SIDE),
      bottom = (int)clamp(fmax(a.y, b.y) + reach + 1, 0, RL_IMAGE_SIDE);
  for (int y = top; y < bottom; y++)
    for (int x = left; x < right; x++) {
      double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
      double along = squared_length > 0 ? clamp((px * dx + py * dy) / squared_length, 0, 1) : 0;
      double ex = px - along * dx, ey = py - along * dy;
      float coverage = (float)clamp(reach - sqrt(ex * ex + ey * ey), 0, 1);
      if (coverage > canvas[y][x]) canvas[y][x] = coverage;
    }
}

static const glyph *random_glyph(random_sequence *random, uint8_t digit) {
  const glyph *variants[GLYPHS];
  int count = 0;
  for (int i = 0; i < GLYPHS; i++)
    if (glyphs[i].digit == digit) variants[count++] = &glyphs[i];
  return variants[(int)uniform(random, 0, count)];
}

/* Draws a digit. The order in which it takes random numbers must not change, because the bytes of the data set depend on it. */
static void draw_digit(random_sequence *random, uint8_t digit, uint8_t *pixels) {
  float canvas[RL_IMAGE_SIDE][RL_IMAGE_SIDE] = {{0}};
  elastic_field field = random_elastic_field(random);
  const glyph *shape = random_glyph(random, digit);
  affine_map map = random_affine_map(random);
  double radius = uniform(random, 0.6, 1.9);
  for (int i = 0; i < shape->stroke_count; i++) {
    stroke curve = shape->strokes[i];
    point start = apply_map(&map, displace(&field, curve.control[0]));
    for (int segment = 1; segment <= SEGMENTS_PER_STROKE; segment++) {
      point end = apply_map(&map, displace(&field, bezier_point(&curve, segment / (double)SEGMENTS_PER_STROKE)));
      draw_segment(canvas, start, end, radius);
      start = end;
    }
  }
  double contrast = uniform(random, 0.55, 1), noise = uniform(random, 0, 0.12);
  for (int i = 0; i < RL_IMAGE_PIXELS; i++) {
    double value = contrast * canvas[i / RL_IMAGE_SIDE][i % RL_IMAGE_SIDE] + noise * normal(random);
    pixels[i] = (uint8_t)(clamp(value, 0, 1) * 255 + 0.5);
  }
}

typedef struct rendering {
  uint64_t key;
  uint32_t count;
  uint8_t *images, *labels;
} rendering;

static void render_chunk(void *context, uint32_t chunk, uint32_t thread) {
  (void)thread;
  const rendering *r = context;
  for (uint32_t i = chunk * CHUNK_IMAGES; i < r->count && i < (chunk + 1) * CHUNK_IMAGES; i++) {
    random_sequence random = {.key = rl_hash64(r->key + i)};
    r->labels[i] = (uint8_t)uniform(&random, 0, RL_CLASSES);
    draw_digit(&random, r->labels[i], r->images + (size_t)i * RL_IMAGE_PIXELS);
  }
}

int rl_synthetic_render(uint64_t seed, uint32_t count, uint8_t *images, uint8_t *labels, rl_error *err) {
  RL_CLEANUP(rl_thread_pool_cleanup) rl_thread_pool *pool = rl_thread_pool_open(0, err);
  if (pool == NULL) return -1;
  rendering r = {rl_hash64(seed), count, images, labels};
  rl_thread_pool_run(pool, (count + CHUNK_IMAGES - 1) / CHUNK_IMAGES, render_chunk, &r);
  return 0;
}
