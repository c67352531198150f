import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Frame, type FrameKind, SseQueue } from './sse-queue.ts'

const frame = (text: string, kind: FrameKind = 'message', key?: string): Frame => ({ bytes: Buffer.from(text), kind, key })
const drain = (queue: SseQueue) => {
  const texts: string[] = []
  for (let next = queue.shift(); next; next = queue.shift()) texts.push(Buffer.from(next.bytes).toString())
  return texts
}

function full(...frames: Frame[]): { queue: SseQueue; dropped: FrameKind[] } {
  const dropped: FrameKind[] = []
  const queue = new SseQueue({ maxFrames: frames.length, maxBytes: 1_000, onDrop: (kind) => dropped.push(kind) })
  for (const one of frames) expect(queue.offer(one)).toBe('queued')
  return { queue, dropped }
}

describe('SseQueue', () => {
  it('drops the oldest progress first, for whatever comes', () => {
    for (const kind of ['message', 'log', 'progress'] as const) {
      const { queue, dropped } = full(frame('l', 'log'), frame('p1', 'progress'), frame('m'), frame('p2', 'progress'))
      expect(queue.offer(frame('new', kind))).toBe('queued')
      expect(dropped).toEqual(['progress'])
      expect(drain(queue)).toEqual(['l', 'm', 'p2', 'new'])
    }
  })

  it('drops new progress rather than a log', () => {
    const { queue, dropped } = full(frame('l', 'log'), frame('m'))
    expect(queue.offer(frame('new', 'progress'))).toBe('dropped')
    expect(dropped).toEqual(['progress'])
    expect(drain(queue)).toEqual(['l', 'm'])
  })

  it('then drops the oldest log', () => {
    const { queue, dropped } = full(frame('l1', 'log'), frame('m'), frame('l2', 'log'))
    expect(queue.offer(frame('new', 'log'))).toBe('queued')
    expect(queue.offer(frame('newer'))).toBe('queued')
    expect(dropped).toEqual(['log', 'log'])
    expect(drain(queue)).toEqual(['m', 'new', 'newer'])
  })

  it('never drops a message', () => {
    const { queue, dropped } = full(frame('m1'), frame('m2'))
    expect(queue.offer(frame('p', 'progress'))).toBe('dropped')
    expect(queue.offer(frame('l', 'log'))).toBe('dropped')
    expect(queue.offer(frame('m3'))).toBe('overflow')
    expect(dropped).toEqual(['progress', 'log'])
    expect(drain(queue)).toEqual(['m1', 'm2'])
  })

  it('is bounded by bytes too, but takes one message of any size', () => {
    const queue = new SseQueue({ maxFrames: 100, maxBytes: 10 })
    expect(queue.offer(frame('x'.repeat(50)))).toBe('queued')
    expect(queue.offer(frame('y'))).toBe('overflow')
    queue.shift()
    expect(queue.bytes).toBe(0)
    expect(queue.offer(frame('y'))).toBe('queued')
  })

  it('keeps one of several frames with the same key', () => {
    const queue = new SseQueue({ maxFrames: 10, maxBytes: 1_000 })
    expect(queue.offer(frame('tools changed', 'message', 'tools'))).toBe('queued')
    expect(queue.offer(frame('prompts changed', 'message', 'prompts'))).toBe('queued')
    expect(queue.offer(frame('tools changed again', 'message', 'tools'))).toBe('coalesced')
    expect(drain(queue)).toEqual(['tools changed', 'prompts changed'])
    expect(queue.offer(frame('tools changed', 'message', 'tools'))).toBe('queued')
  })

  it('keeps order and bounds and loses no message, whatever happens', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom<FrameKind>('message', 'log', 'progress'), size: fc.nat(8) }) },
      { weight: 1, arbitrary: fc.constant('shift' as const) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let dropped = 0
        const queue = new SseQueue({ maxFrames: 5, maxBytes: 20, onDrop: () => dropped++ })
        const offered = new Map<number, FrameKind>()
        const refused = new Set<number>()
        const out: number[] = []
        const take = () => {
          const next = queue.shift()
          if (next) out.push(Number(Buffer.from(next.bytes).toString().trim()))
        }
        for (const [i, one] of steps.entries()) {
          if (one === 'shift') {
            take()
            continue
          }
          const outcome = queue.offer(frame(String(i).padEnd(3 + one.size), one.kind))
          if (outcome === 'overflow') refused.add(i)
          else offered.set(i, one.kind)
          expect(queue.size).toBeLessThanOrEqual(5)
          expect(queue.bytes).toBeLessThan(20 + 11)
        }
        while (queue.size > 0) take()
        expect(out).toEqual([...out].sort((a, b) => a - b))
        for (const [i, kind] of offered) if (kind === 'message') expect(out).toContain(i)
        expect(out.length + dropped).toBe(offered.size)
        for (const i of refused) expect(out).not.toContain(i)
      }),
    )
  })
})
