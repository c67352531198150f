import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linesOf } from './lines.ts'

async function read(chunks: readonly Uint8Array[]): Promise<string[]> {
  const source = async function* () {
    yield* chunks
  }
  const lines: string[] = []
  for await (const line of linesOf(source())) lines.push(line)
  return lines
}

describe('linesOf', () => {
  it.each<[string, string[]]>([
    ['', []],
    ['a\nb\n', ['a', 'b']],
    ['a\r\nb\r\n', ['a', 'b']],
    ['a\n\nb', ['a', '', 'b']],
    ['begun', ['begun']],
    ['"a\u2028b\u2029c"\n"d\u0085e\u000bf\u000cg"\n', ['"a\u2028b\u2029c"', '"d\u0085e\u000bf\u000cg"']],
    ['a\rb\n', ['a\rb']],
  ])('%j has the lines %j', async (text, expected) => {
    expect(await read([Buffer.from(text)])).toEqual(expected)
  })

  it('does not depend on where the bytes are cut, also within a character', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'ü', '大', '👩‍👧', '\u2028', '\u2029', ' ') })
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.array(fc.nat(40)), async (lines, sizes) => {
        const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(''))
        const chunks: Uint8Array[] = []
        let at = 0
        for (const size of sizes) {
          chunks.push(bytes.subarray(at, at + size))
          at += size
        }
        expect(await read([...chunks, bytes.subarray(at)])).toEqual(lines)
      }),
    )
  })
})
