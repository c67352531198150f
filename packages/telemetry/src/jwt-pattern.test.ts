import { describe, expect, it } from 'vitest'
import { withoutJwts } from './jwt-pattern.ts'

const HEADER = 'eyJhbGciOiJIUzI1NiJ9'
const PIECES = 32

describe('JWTs in a text', () => {
  it.each([
    [`got ${HEADER}.eyJzdWIiOiIxIn0.c2ln here`, 'got [x] here'],
    [`a ${HEADER}.p, b ${HEADER}.p.s.`, 'a [x], b [x].'],
    [`${HEADER}.payload.`, '[x]'],
    [`session-${HEADER}.p.s`, 'session-[x]'],
    [`host.name-${HEADER}.p.s`, 'host.name-[x]'],
    [`${HEADER}.p.s.${HEADER}.p.s`, '[x].[x]'],
    [`eyJ-${HEADER}.p`, '[x]'],
    ['"eyJhbGciO.x"', '"[x]"'],
  ])('%s becomes %s', (text, expected) => expect(withoutJwts(text, '[x]')).toBe(expected))

  it.each(['eyJ', 'eyJhbGciO', 'eyJhbGciO.', 'keyJhbGciO.p.s', 'eyJhbG.p.s', 'a.eyJ.b', 'v1.2.3-eyJ'])('%s stays', (text) =>
    expect(withoutJwts(text, '[x]')).toBe(text),
  )

  it.each<[string, string]>([
    ['starts without a dot', 'eyJ-'],
    ['starts inside words', 'keyJ'],
    ['dots', 'eyJ.'],
    ['whole tokens', `${HEADER}.p.s `],
    ['tokens in one run', `${HEADER}.p.s.`],
  ])('cost time in proportion to the text: %s', (_, unit) => {
    const small = unit.repeat(4_000 / unit.length)
    const large = small.repeat(PIECES)
    const pieces = leastTime(() => {
      for (let i = 0; i < PIECES; i++) withoutJwts(small, '[x]')
    })
    // As much text at once. With quadratic work it would cost 32 times as much.
    expect(leastTime(() => withoutJwts(large, '[x]')) / pieces).toBeLessThan(PIECES / 3)
  })
})

/** Of several tries, so that a pause of the machine does not count. */
function leastTime(work: () => void): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 15; i++) {
    const before = performance.now()
    work()
    least = Math.min(least, performance.now() - before)
  }
  return least
}
