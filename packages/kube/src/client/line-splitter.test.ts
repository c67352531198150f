import { isThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitLines } from './line-splitter.ts'

const call = { verb: 'watch', target: 'pods' }

async function collect(chunks: Uint8Array[], limit = 1 << 20): Promise<{ lines: string[]; rest: string }> {
  async function* source() {
    yield* chunks
  }
  const iterator = splitLines(source(), { limit, call })
  const lines: string[] = []
  for (;;) {
    const { done, value } = await iterator.next()
    if (done) return { lines, rest: value.toString('utf8') }
    lines.push(value.toString('utf8'))
  }
}

describe('splitLines', () => {
  it('is not disturbed by where the chunks are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary' }).map((s) => s.replaceAll('\n', '').toWellFormed())),
        fc.string().map((s) => s.replaceAll('\n', '')),
        fc.array(fc.nat(200)),
        async (lines, rest, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join('') + rest)
          const at = [...new Set([0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length])].sort((a, b) => a - b)
          const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end))
          expect(await collect(chunks)).toEqual({ lines, rest })
        },
      ),
    )
  })

  it('takes a line of exactly the limit and refuses one byte more, with or without its newline', async () => {
    const ten = Buffer.from('0123456789')
    expect(await collect([ten, Buffer.from('\n')], 10)).toEqual({ lines: ['0123456789'], rest: '' })
    for (const chunks of [[ten, Buffer.from('X\n')], [Buffer.from('0123456789X\n')], [ten, Buffer.from('X')]]) {
      await expect(collect(chunks, 10)).rejects.toSatisfy((error) => isThvError(error, 'kube_response_too_large'))
    }
  })

  it('counts each line by itself', async () => {
    const chunks = Array.from({ length: 100 }, () => Buffer.from('12345\n678'))
    expect((await collect(chunks, 8)).lines).toHaveLength(100)
  })

  it('pulls the next chunk only when its lines are used up', async () => {
    let pulled = 0
    async function* source() {
      for (;;) {
        pulled++
        yield Buffer.from('a\nb\n')
      }
    }
    const iterator = splitLines(source(), { limit: 100, call })
    await iterator.next()
    await iterator.next()
    expect(pulled).toBe(1)
    await iterator.next()
    expect(pulled).toBe(2)
  })
})
