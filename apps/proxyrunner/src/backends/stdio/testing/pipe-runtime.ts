import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import type { FixtureOptions } from '@thv/testkit/mcp/state/options'
import { createWorld } from '@thv/testkit/mcp/state/world'
import { serveStdio } from '@thv/testkit/mcp/stdio'
import type { Runtime, StdioConnection, StdioEnd } from '../../../runtime/runtime.ts'

/** The server's side of the pipes of one process. */
export interface ServerEnds {
  readonly input: PassThrough
  readonly output: PassThrough
  /** How many were started before this one. */
  readonly index: number
  write(text: string): void
  exit(code: number): void
  readonly ended: Promise<StdioEnd>
}

export interface PipeRuntime extends Runtime {
  /** All that were ever started, in order. */
  readonly started: readonly ServerEnds[]
  /** Those that have not ended. */
  readonly alive: number
}

export interface PipeRuntimeOptions {
  readonly name?: 'local' | 'kubernetes'
  readonly capacity?: number
  readonly instance?: (index: number) => string
  /** Rejects the start, as a missing program would. */
  readonly failStart?: (index: number) => boolean
}

/** Servers that run in this process, at the end of a pair of pipes. */
export function pipeRuntime(serve: (ends: ServerEnds) => void, options: PipeRuntimeOptions = {}): PipeRuntime {
  const started: ServerEnds[] = []
  let alive = 0
  let attempts = 0
  return {
    name: options.name ?? 'local',
    stdioCapacity: options.capacity ?? 32,
    started,
    get alive() {
      return alive
    },
    startServer: () => Promise.reject(new Error('not a server with HTTP')),
    async openStdio() {
      if (options.failStart?.(attempts++)) throw new Error('no such program')
      const input = new PassThrough()
      const output = new PassThrough()
      const ended = Promise.withResolvers<StdioEnd>()
      let isOver = false
      const exit = (code: number) => {
        if (isOver) return
        isOver = true
        alive--
        output.end()
        input.destroy()
        ended.resolve({ code, message: `ended with code ${code}` })
      }
      const ends: ServerEnds = {
        input,
        output,
        index: started.length,
        write: (text) => void output.write(text),
        exit,
        ended: ended.promise,
      }
      started.push(ends)
      alive++
      const connection: StdioConnection = {
        stdin: input,
        stdout: output,
        ended: ended.promise,
        ...(options.instance ? { instance: options.instance(ends.index) } : {}),
        async close() {
          if (options.name === 'kubernetes') return
          input.end()
          exit(0)
        },
      }
      serve(ends)
      return connection
    },
    async close() {
      for (const { exit } of started) exit(0)
    },
  }
}

/** The fixture server of the test kit, without a process of its own. */
export function fixtureServer(options: FixtureOptions = {}): (ends: ServerEnds) => void {
  return (ends) => {
    const life = new AbortController()
    const world = createWorld({ ...options, transport: 'stdio' }, { signal: life.signal, crash: (code) => ends.exit(code) })
    void ends.ended.then(() => life.abort(new Error('the fixture has ended')))
    void serveStdio(world, {
      input: ends.input,
      write: (text) => ends.write(text),
      closeOutput: () => void ends.output.end(),
      exit: (code) => ends.exit(code),
    }).then(
      () => ends.exit(0),
      () => ends.exit(1),
    )
  }
}

export interface ScriptedMessage {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: unknown
  readonly error?: { readonly code: number }
}

/** A server that is a function of each message it gets; the legacy handshake is done for it unless it answers it itself. */
export function scriptedServer(
  onMessage: (message: ScriptedMessage, send: (message: object | string) => void, ends: ServerEnds) => void,
  { capabilities = {}, version = '2025-11-25' }: { capabilities?: object; version?: string } = {},
): (ends: ServerEnds) => void {
  return (ends) => {
    const send = (message: object | string) => ends.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`)
    createInterface({ input: ends.input, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      const message = JSON.parse(line) as ScriptedMessage
      if (message.method === 'initialize') {
        const result = { protocolVersion: version, capabilities, serverInfo: { name: 'scripted', version: '1' } }
        send({ jsonrpc: '2.0', id: message.id, result })
      }
      onMessage(message, send, ends)
    })
  }
}
