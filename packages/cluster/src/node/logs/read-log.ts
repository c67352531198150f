import { type FileHandle, open } from 'node:fs/promises'
import type { PodLogOptions } from '../../apiserver/kinds/pod/pod-streams.ts'
import type { ContainerLog } from './container-log.ts'
import { type LogPart, logParts } from './log-folder.ts'
import { parseLine } from './log-line.ts'

export interface LogSource {
  readonly folder: string
  readonly run: number
  /** While the run is not over. */
  readonly live?: ContainerLog | undefined
}

const CHUNK = 65_536
const NEWLINE = 0x0a

/** The part of one run's log that the options select, in pieces of a comfortable size; with `follow` until the run is over. */
export async function* readLog(source: LogSource, options: PodLogOptions): AsyncGenerator<Uint8Array, void, undefined> {
  const { limitBytes = Infinity, since } = options
  if (limitBytes <= 0) return
  const sinceText = since === undefined ? '' : new Date(since).toISOString().replace('Z', '000000Z')
  let left = limitBytes
  for await (const lines of rawLines(source, options)) {
    const out: Buffer[] = []
    for (const raw of lines) {
      const line = parseLine(raw)
      if (line === undefined || line.time < sinceText) continue
      if (options.timestamps) out.push(Buffer.from(`${line.time} `))
      out.push(line.text)
      if (line.isWhole) out.push(Buffer.of(NEWLINE))
    }
    const bytes = Buffer.concat(out)
    if (bytes.length > 0) yield bytes.length > left ? bytes.subarray(0, left) : bytes
    left -= bytes.length
    if (left <= 0) return
  }
}

/** Batches of complete lines of the files, without their ends. */
async function* rawLines(source: LogSource, options: PodLogOptions): AsyncGenerator<Buffer[], void, undefined> {
  const { signal, follow, tailLines } = options
  const live = follow ? source.live : undefined
  const changes = live === undefined ? undefined : watchChanges(live, signal)
  let reader: PartReader | undefined
  try {
    const parts = await partsOf(source)
    const start = tailLines === undefined ? { index: 0, offset: 0 } : await tailStart(parts, tailLines)
    let part = parts[start.index]
    if (part === undefined) return
    reader = await openPart(part, start.offset)
    for (;;) {
      signal.throwIfAborted()
      const wasComplete = live?.isComplete ?? true
      const lines = await reader?.next()
      if (lines !== undefined && lines.length > 0) {
        yield lines
        continue
      }
      const at: number = part.part
      const next: LogPart | undefined = (await partsOf(source)).find((other) => other.part > at)
      if (next !== undefined) {
        // The writer may have added to this part between our last read and the birth of the next one.
        const rest = await reader?.next()
        if (rest !== undefined && rest.length > 0) {
          yield rest
          continue
        }
        await reader?.close()
        part = next
        reader = await openPart(next, 0)
      } else if (wasComplete) {
        return
      } else {
        await changes?.next()
      }
    }
  } finally {
    changes?.stop()
    await reader?.close()
  }
}

async function partsOf({ folder, run }: LogSource): Promise<LogPart[]> {
  return (await logParts(folder)).filter((part) => part.run === run)
}

interface PartReader {
  /** Undefined or empty at the present end of the file. */
  next(): Promise<Buffer[]>
  close(): Promise<void>
}

/** Undefined when the part was thrown away meanwhile. */
async function openPart(part: LogPart, offset: number): Promise<PartReader | undefined> {
  const file = await open(part.path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return undefined
  let position = offset
  let held = Buffer.alloc(0)
  const buffer = Buffer.alloc(CHUNK)
  return {
    async next() {
      const lines: Buffer[] = []
      while (lines.length === 0) {
        const { bytesRead } = await file.read(buffer, 0, CHUNK, position)
        if (bytesRead === 0) return []
        position += bytesRead
        const bytes = Buffer.concat([held, buffer.subarray(0, bytesRead)])
        let from = 0
        for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
          lines.push(bytes.subarray(from, end))
          from = end + 1
        }
        held = bytes.subarray(from)
      }
      return lines
    },
    close: () => file.close(),
  }
}

/** Where the last `count` lines begin. Pieces of lines count as lines, as they do for a kubelet. */
async function tailStart(parts: readonly LogPart[], count: number): Promise<{ index: number; offset: number }> {
  let left = count
  for (let index = parts.length - 1; index >= 0; index--) {
    const part = parts[index]
    const file = part && (await open(part.path).catch(() => undefined)) // thrown away: it has no lines any more
    if (file === undefined) continue
    try {
      const { size } = await file.stat()
      const found = await tailOffset(file, size, left)
      if (found.offset !== undefined) return { index, offset: found.offset }
      left -= found.lines
    } finally {
      await file.close()
    }
  }
  return { index: 0, offset: 0 }
}

async function tailOffset(file: FileHandle, size: number, count: number): Promise<{ offset?: number; lines: number }> {
  if (count <= 0) return { offset: size, lines: 0 }
  const buffer = Buffer.alloc(CHUNK)
  let lines = 0
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK)
    await file.read(buffer, 0, end - start, start)
    for (let index = end - start - 1; index >= 0; index--) {
      if (buffer[index] !== NEWLINE) continue
      if (lines === count) return { offset: start + index + 1, lines }
      lines++
    }
    end = start
  }
  return lines === count ? { offset: 0, lines } : { lines }
}

/** Resolves `next` when something was written since the last one, or at the latest when the signal aborts. */
function watchChanges(live: ContainerLog, signal: AbortSignal): { next(): Promise<void>; stop(): void } {
  let changed = true // something may have come before we listened
  let wake: (() => void) | undefined
  const notice = () => {
    changed = true
    wake?.()
  }
  const leave = live.onChange(notice)
  signal.addEventListener('abort', notice, { once: true })
  return {
    async next() {
      if (!changed)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      changed = false
    },
    stop() {
      leave()
      signal.removeEventListener('abort', notice)
    },
  }
}
