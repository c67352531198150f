import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { ServedView } from '../../engine/engine.ts'
import { createCompressedPages } from './compressed-pages.ts'

const viewNamed = (tag: string) => ({ tag }) as ServedView
const text = (bytes: Uint8Array | undefined) => (bytes ? gunzipSync(bytes).toString() : undefined)

describe('compressed pages', () => {
  it('compresses once per view and question', async () => {
    const pages = createCompressedPages()
    const view = viewNamed('a')
    let made = 0
    const parts = () => {
      made++
      return [Buffer.from('one '), Buffer.from('page')]
    }
    const first = pages.get(view, '/a', parts)
    expect(pages.get(view, '/a', parts), 'a second one waits for the first').toBe(first)
    expect(text(await first)).toBe('one page')
    expect(text(await pages.get(view, '/a', parts))).toBe('one page')
    expect(made).toBe(1)
    await pages.get(viewNamed('a'), '/a', parts)
    expect(made, 'another view, whatever its tag').toBe(2)
  })

  it('keeps to its bound, and drops what was not used for longest', async () => {
    const noise = (n: number) => [Buffer.from(Array.from({ length: 2_000 }, (_, i) => (i * 7919 * n) % 251))]
    const pages = createCompressedPages({ maxBytes: 5_000 })
    const view = viewNamed('a')
    await pages.get(view, '1', () => noise(1))
    const used = pages.bytes
    await pages.get(view, '2', () => noise(2))
    await pages.get(view, '1', () => expect.unreachable())
    for (let i = 3; pages.bytes + used <= 5_000; i++) await pages.get(view, String(i), () => noise(i))
    await pages.get(view, 'last', () => noise(99))
    expect(pages.bytes).toBeLessThanOrEqual(5_000)
    await pages.get(view, '1', () => expect.unreachable())
    let again = false
    await pages.get(view, '2', () => {
      again = true
      return noise(2)
    })
    expect(again).toBe(true)
  })

  it('lets pages go as they are that are too large to be put together at once', async () => {
    const pages = createCompressedPages({ maxPage: 10 })
    expect(pages.get(viewNamed('a'), '1', () => [Buffer.from('123456'), Buffer.from('78901')])).toBeUndefined()
    expect(text(await pages.get(viewNamed('a'), '1', () => [Buffer.from('123456'), Buffer.from('7890')]))).toBe('1234567890')
  })

  it('lets pages go as they are when enough is being compressed, or the question is too long to keep', async () => {
    const pages = createCompressedPages({ maxRunning: 1 })
    const view = viewNamed('a')
    const running = pages.get(view, '1', () => [Buffer.from('x')])
    expect(pages.get(view, '2', () => expect.unreachable())).toBeUndefined()
    await running
    expect(await pages.get(view, '2', () => [Buffer.from('y')])).toBeDefined()
    expect(pages.get(view, 'x'.repeat(2_000), () => expect.unreachable())).toBeUndefined()
  })
})
