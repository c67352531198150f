import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LineOutput, WriteCallback } from './line-output.ts'
import { LineWriter } from './line-writer.ts'
import { RotatingFile } from './rotating-file.ts'

/** An output whose writes end when the test says so. */
class HeldOutput implements LineOutput {
  readonly maxBatchBytes = 1_000
  readonly written: string[] = []
  resets = 0
  closed = false
  #pending: { text: string; done: WriteCallback } | undefined

  begin(): undefined {
    return undefined
  }

  write(bytes: Buffer, offset: number, done: WriteCallback): void {
    if (this.#pending !== undefined) throw new Error('two writes at a time')
    this.#pending = { text: bytes.toString('utf8', offset), done }
  }

  /** Ends the write under way; `length` for part of it. */
  succeed(length?: number): void {
    const { text, done } = this.#take()
    const part = text.slice(0, length)
    this.written.push(part)
    done(null, Buffer.byteLength(part))
  }

  fail(code: string): void {
    this.#take().done(Object.assign(new Error(code), { code }), 0)
  }

  get isWriting(): boolean {
    return this.#pending !== undefined
  }

  reset(): void {
    this.resets++
  }

  async close(): Promise<void> {
    this.closed = true
  }

  #take() {
    const pending = this.#pending
    if (pending === undefined) throw new Error('no write under way')
    this.#pending = undefined
    return pending
  }
}

function writerOf(output: LineOutput, { maxBytes = 100, clock = new TestClock() } = {}) {
  const failures: unknown[] = []
  const writer = new LineWriter({ output, clock, maxBytes, droppedLine: (n) => `dropped ${n}\n`, onFailure: (e) => failures.push(e) })
  return { writer, clock, failures }
}

describe('a line writer', () => {
  it('writes the first line at once and collects what comes meanwhile', async () => {
    const output = new HeldOutput()
    const { writer, clock } = writerOf(output)
    for (const line of ['a\n', 'b\n', 'c\n']) writer.write(line)
    output.succeed()
    expect(output.isWriting).toBe(false)
    await clock.advance(5)
    output.succeed()
    expect(output.written).toEqual(['a\n', 'b\nc\n'])
    expect(writer.waitingBytes).toBe(0)
  })

  it('drops what does not fit, counts it, and says so when there is room', async () => {
    const output = new HeldOutput()
    const { writer, clock } = writerOf(output, { maxBytes: 10 })
    for (let i = 0; i < 10; i++) writer.write(`l${i}\n`) // three bytes each
    expect(writer.dropped).toBe(7)
    expect(writer.waitingBytes).toBeLessThanOrEqual(10)
    output.succeed()
    await clock.advance(5)
    output.succeed()
    expect(output.written).toEqual(['l0\n', 'l1\nl2\ndropped 7\n'])
  })

  it('goes on after a partial write', () => {
    const output = new HeldOutput()
    const { writer } = writerOf(output)
    writer.write('abcdef\n')
    output.succeed(3)
    output.succeed()
    expect(output.written.join('')).toBe('abcdef\n')
  })

  it('waits for a reader that is slow and for a disk that is full, and tears no line', async () => {
    const output = new HeldOutput()
    const { writer, clock, failures } = writerOf(output)
    writer.write('abcdef\n')
    output.succeed(3)
    output.fail('EAGAIN')
    await clock.advance(5)
    output.fail('ENOSPC')
    expect([failures.length, output.resets]).toEqual([1, 0])
    await clock.advance(100)
    output.succeed()
    expect(output.written.join('')).toBe('abcdef\n')
  })

  it('begins the line again where the output had to be opened again', async () => {
    const output = new HeldOutput()
    const { writer, clock } = writerOf(output)
    writer.write('first\n')
    output.succeed(2)
    output.fail('EIO')
    expect(output.resets).toBe(1)
    await clock.advance(100)
    output.succeed()
    expect(output.written).toEqual(['fi', 'first\n'])
  })

  it('writes all lines when it closes, and drops what cannot be written in time', async () => {
    const output = new HeldOutput()
    const { writer, clock } = writerOf(output)
    writer.write('a\n')
    writer.write('b\n')
    const closing = writer.close()
    output.succeed()
    output.succeed()
    await closing
    expect([output.written, output.closed, writer.dropped]).toEqual([['a\n', 'b\n'], true, 0])

    const stuck = new HeldOutput()
    const other = writerOf(stuck, { clock })
    other.writer.write('a\n')
    other.writer.write('b\n')
    const stopping = other.writer.close()
    await clock.advance(5_000)
    await stopping
    expect([stuck.closed, other.writer.dropped]).toEqual([true, 2])
  })

  it('makes nothing asynchronous per line while a write is under way', async () => {
    const { createHook } = await import('node:async_hooks')
    const output = new HeldOutput()
    const { writer } = writerOf(output, { maxBytes: 10_000 })
    writer.write('first\n')
    const made: string[] = []
    const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
    for (let i = 0; i < 100; i++) writer.write('line\n')
    hook.disable()
    expect(made).toEqual([])
  })
})

describe('a rotated file', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lines-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  const settled = async (writer: LineWriter) => await expect.poll(() => writer.waitingBytes, { timeout: 10_000 }).toBe(0)
  function fileWriter(options: { maxBytes?: number; maxFiles?: number } = {}) {
    const path = join(folder, 'audit.log')
    const output = new RotatingFile({ path, maxBytes: 1_000, maxFiles: 3, ...options })
    return { path, writer: new LineWriter({ output, droppedLine: (count) => `dropped ${count}\n` }) }
  }

  it('appends, and only its owner can read it', async () => {
    const { path, writer } = fileWriter()
    writer.write('a\n')
    await writer.close()
    const again = fileWriter()
    again.writer.write('b\n')
    await again.writer.close()
    expect(await readFile(path, 'utf8')).toBe('a\nb\n')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('keeps the configured number of files, none too large, no line torn', async () => {
    const { path, writer } = fileWriter({ maxBytes: 100, maxFiles: 3 })
    for (let i = 0; i < 100; i++) {
      writer.write(`line ${String(i).padStart(4, '0')}\n`)
      if (i % 7 === 0) await settled(writer)
    }
    await writer.close()
    expect((await readdir(folder)).sort()).toEqual(['audit.log', 'audit.log.1', 'audit.log.2'])
    const files = await Promise.all([`${path}.2`, `${path}.1`, path].map((file) => readFile(file, 'utf8')))
    for (const text of files) expect(text.length).toBeLessThanOrEqual(100)
    const lines = files.join('').trimEnd().split('\n')
    for (const line of lines) expect(line).toMatch(/^line \d{4}$/)
    expect(lines.at(-1)).toBe('line 0099')
  })

  it('comes back when somebody removes it', async () => {
    const { path, writer } = fileWriter()
    writer.write('a\n')
    await settled(writer)
    await rm(path)
    await expect
      .poll(
        async () => {
          writer.write('b\n')
          await settled(writer)
          return await readFile(path, 'utf8').catch(() => '')
        },
        { timeout: 20_000, interval: 100 },
      )
      .toMatch(/^(b\n)+$/)
    await writer.close()
  })

  it('cannot be made where it cannot be opened', () => {
    expect(() => new RotatingFile({ path: join(folder, 'none', 'audit.log'), maxBytes: 1, maxFiles: 1 })).toThrow(/ENOENT/)
    expect(() => new RotatingFile({ path: folder, maxBytes: 1, maxFiles: 1 })).toThrow()
  })
})
