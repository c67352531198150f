import { PassThrough, Writable } from 'node:stream'
import { isThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LineFramer } from './line-framer.ts'
import { writeLine } from './write-line.ts'

const never = new AbortController().signal

/** A pipe whose reader takes one line at a time, when told to. */
class SlowPipe extends Writable {
  readonly lines: string[] = []
  readonly #waiting: (() => void)[] = []

  constructor() {
    super({ highWaterMark: 10 })
    this.on('error', () => {})
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.lines.push(chunk.toString())
    this.#waiting.push(done)
  }

  async read(): Promise<void> {
    this.#waiting.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const isClosed = (error: unknown) => isThvError(error, 'stream_closed')

describe('writeLine', () => {
  it('writes a line at once while there is room, and waits while there is none', async () => {
    const pipe = new SlowPipe()
    await writeLine(pipe, '{"long":"0123456789"}', never)
    let written = 0
    const waiting = ['{"n":1}', '{"n":2}', '{"n":3}'].map((json) => writeLine(pipe, json, never).then(() => written++))
    await turn()
    expect(written).toBe(0)
    await pipe.read()
    expect(written).toBeGreaterThan(0)
    for (let i = 0; i < 6; i++) await pipe.read()
    await Promise.all(waiting)
    expect(pipe.lines.join('')).toBe('{"long":"0123456789"}\n{"n":1}\n{"n":2}\n{"n":3}\n')
  })

  it('holds no more in the pipe than its limit and one line', async () => {
    const pipe = new SlowPipe()
    const writers = Array.from({ length: 50 }, (_, i) => writeLine(pipe, `{"id":${i},"pad":"0123456789"}`, never))
    for (let i = 0; i < 60; i++) {
      expect(pipe.writableLength).toBeLessThan(10 + 40)
      expect(pipe.listenerCount('drain')).toBeLessThanOrEqual(1)
      await pipe.read()
    }
    await Promise.all(writers)
    expect(pipe.lines).toHaveLength(50)
    expect(pipe.listenerCount('drain') + pipe.listenerCount('close')).toBe(0)
  })

  it('writes nothing for a caller that has given up', async () => {
    const pipe = new SlowPipe()
    await writeLine(pipe, '{"long":"0123456789"}', never)
    const caller = new AbortController()
    const write = writeLine(pipe, '{"n":1}', caller.signal)
    const other = writeLine(pipe, '{"n":2}', never)
    caller.abort(new Error('client left'))
    await expect(write).rejects.toThrow('client left')
    await expect(writeLine(pipe, '{}', caller.signal)).rejects.toThrow('client left')
    for (let i = 0; i < 4; i++) await pipe.read()
    await other
    expect(pipe.lines.join('')).toBe('{"long":"0123456789"}\n{"n":2}\n')
  })

  it('rejects when the pipe is or gets closed', async () => {
    const ended = new PassThrough()
    ended.end()
    await expect(writeLine(ended, '{}', never)).rejects.toSatisfy(isClosed)

    const pipe = new SlowPipe()
    await writeLine(pipe, '{"long":"0123456789"}', never)
    const waiting = [writeLine(pipe, '{}', never), writeLine(pipe, '{}', never)]
    const results = Promise.allSettled(waiting)
    pipe.destroy(new Error('EPIPE'))
    for (const result of await results) {
      expect(result.status).toBe('rejected')
      const { reason } = result as PromiseRejectedResult
      expect(isClosed(reason)).toBe(true)
      expect((reason as Error).cause).toMatchObject({ message: 'EPIPE' })
    }
    await expect(writeLine(pipe, '{}', never)).rejects.toSatisfy(isClosed)
  })

  it('puts any JSON text on one line without changing its meaning', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), async (params) => {
        const pipe = new PassThrough()
        const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { params } }, undefined, '\r\n\t')
        await writeLine(pipe, text, never)
        const messages: unknown[] = []
        const framer = new LineFramer({ onMessage: ({ message }) => messages.push(message), onNoise: (noise) => messages.push(noise) })
        const line: Buffer = pipe.read()
        expect(line.toString()).toMatch(/^[^\r\n]+\n$/)
        framer.push(line)
        expect(messages).toEqual([JSON.parse(text)])
      }),
      { numRuns: 50 },
    )
  })
})
