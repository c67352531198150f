import { type ChildProcess, spawn } from 'node:child_process'
import { on } from 'node:events'
import { badRequest } from '../../../../objects/status-error.ts'
import type { AttachedContainer, ContainerTarget, PodLogOptions, PodStreams } from '../../pod-streams.ts'

/** A node of one container: a program of this machine. It keeps no files: its log is what it says while someone follows. */
export interface ChildStreams extends PodStreams {
  readonly child: ChildProcess
  /** Requests, in order. */
  readonly asked: (ContainerTarget & Partial<PodLogOptions>)[]
  readonly attached: number
}

export function childStreams(command: string, args: readonly string[]): ChildStreams {
  const child = spawn(command, args, { stdio: 'pipe' })
  child.stdin.on('error', () => undefined) // a program may end before it has read everything
  const asked: ChildStreams['asked'] = []
  let attached = 0
  return {
    child,
    asked,
    get attached() {
      return attached
    },
    async logs(target, { signal, ...options }) {
      asked.push({ ...target, ...options })
      if (options.previous) throw badRequest(`previous terminated container "${target.container}" in pod "${target.pod}" not found`)
      return options.follow ? chunks(child.stdout, signal) : twoLines()
    },
    async attach(target, { signal }): Promise<AttachedContainer> {
      asked.push(target)
      attached++
      return {
        output: merged(child, signal),
        write: (bytes) =>
          new Promise((resolve, reject) => {
            child.stdin?.write(bytes, (error) => (error ? reject(error) : resolve()))
          }),
        endInput: () => child.stdin?.end(),
        close: () => {
          attached--
        },
      }
    },
  }
}

async function* twoLines(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('one\n')
  yield Buffer.from('two\n')
}

async function* chunks(stream: NodeJS.ReadableStream | null, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (stream === null) return
  try {
    for await (const [chunk] of on(stream, 'data', { signal, close: ['end'] })) yield chunk as Buffer
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Nothing is read from the child before it is asked for. */
async function* merged(child: ChildProcess, signal: AbortSignal): AsyncGenerator<{ stream: 'stdout' | 'stderr'; bytes: Uint8Array }> {
  const sources = (['stdout', 'stderr'] as const).map((stream) => ({ stream, reader: child[stream]?.[Symbol.asyncIterator]() }))
  const next = (at: number) => {
    const source = sources[at]
    return source?.reader?.next().then((result: IteratorResult<Buffer>) => ({ at, stream: source.stream, result }))
  }
  const waiting = new Map(sources.map((_, at) => [at, next(at)]))
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  while (waiting.size > 0) {
    const first = await Promise.race([aborted, ...waiting.values()])
    if (first === undefined) return
    if (first.result.done) waiting.delete(first.at)
    else {
      yield { stream: first.stream, bytes: first.result.value }
      waiting.set(first.at, next(first.at))
    }
  }
}
