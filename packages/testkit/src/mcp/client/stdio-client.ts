import { ThvError } from '@thv/kernel/errors'
import { type ClientContext, clientContext } from '@thv/mcp/client/client-context'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import { DuplexLink } from '@thv/mcp/client/duplex-link'
import type { Engine, ServerIdentity } from '@thv/mcp/client/engine'
import { EngineClient, type Opener } from '@thv/mcp/client/engine-client'
import { LegacyEngine } from '@thv/mcp/client/legacy-engine'
import { createLegacyMemory } from '@thv/mcp/client/legacy-memory'
import type { ClientOptions, McpClient } from '@thv/mcp/client/mcp-client'
import { ModernEngine } from '@thv/mcp/client/modern-engine'
import type { Era } from '@thv/mcp/versions'
import { openPipe, type StdioStreams } from './pipe-channel.ts'
import { probeStdio } from './probe-stdio.ts'

export interface StdioOptions extends ClientOptions {
  /** The ends of a running server; or how to start one, which is called again when a server has ended or must be asked afresh. */
  readonly streams: StdioStreams | (() => StdioStreams | Promise<StdioStreams>)
  /**
   * With era `auto`: what to begin with. Published servers take the era of the first request for the rest of their life, and some die of
   * a request before `initialize`; so it is `legacy` unless given, and `modern` needs `streams` to be a function to be safe.
   */
  readonly prefer?: Era | undefined
}

/** A client of a server process by its pipes. Starting and ending the process is for who owns it. */
export function createStdioClient(options: StdioOptions): McpClient {
  const context = clientContext(options)
  return new EngineClient(context, new StdioOpener(context, options))
}

class StdioOpener implements Opener {
  readonly #context: ClientContext
  readonly #options: StdioOptions
  readonly #memory = createLegacyMemory()
  #isUsed = false

  constructor(context: ClientContext, options: StdioOptions) {
    this.#context = context
    this.#options = options
  }

  async open(signal: AbortSignal): Promise<Engine> {
    const { era = 'auto', prefer = 'legacy' } = this.#options
    if (era !== 'auto')
      return await this.#onNewPipe((pipe) => (era === 'modern' ? this.#openModern(pipe, signal) : this.#openLegacy(pipe, signal)))
    return await (prefer === 'legacy' ? this.#legacyFirst(signal) : this.#modernFirst(signal))
  }

  /** The handshake has no effect on a server that knows none, so the other era may follow on the same pipe. */
  #legacyFirst(signal: AbortSignal): Promise<Engine> {
    return this.#onNewPipe(async (pipe) => {
      try {
        return await this.#openLegacy(pipe, signal)
      } catch (error) {
        if (!(error instanceof McpErrorResponse)) throw error
        return await this.#openModern(pipe, signal, error)
      }
    })
  }

  /** A probe (§3.3). A server that is not modern may be stuck or gone by now; then only another process can help. */
  async #modernFirst(signal: AbortSignal): Promise<Engine> {
    try {
      return await this.#onNewPipe(async (pipe) => {
        const { verdict, identity } = await probeStdio(pipe, this.#context, signal)
        return verdict === 'modern' ? this.#modernEngine(pipe.link, identity) : await this.#openLegacy(pipe, signal)
      })
    } catch (error) {
      if (typeof this.#options.streams !== 'function' || signal.aborted) throw error
      return await this.#onNewPipe((pipe) => this.#openLegacy(pipe, signal))
    }
  }

  #openLegacy({ link }: Pipe, signal: AbortSignal): Promise<Engine> {
    return LegacyEngine.open({ link, context: this.#context, memory: this.#memory, signal })
  }

  async #openModern(pipe: Pipe, signal: AbortSignal, refusal?: unknown): Promise<Engine> {
    const { verdict, identity } = await probeStdio(pipe, this.#context, signal)
    if (verdict !== 'modern' && refusal !== undefined) throw refusal
    return this.#modernEngine(pipe.link, identity)
  }

  #modernEngine(link: DuplexLink, identity: ServerIdentity | undefined): Engine {
    const unknown = { serverInfo: undefined, capabilities: {}, instructions: undefined }
    const engine = new ModernEngine({ link, context: this.#context, identity: identity ?? unknown })
    link.receive = (message) => engine.receive(message)
    link.onLost = (reason) => engine.end(reason)
    return engine
  }

  async #onNewPipe(work: (pipe: Pipe) => Promise<Engine>): Promise<Engine> {
    const { streams } = this.#options
    if (this.#isUsed && typeof streams !== 'function') throw new ThvError('stream_closed', 'the MCP server has ended')
    this.#isUsed = true
    const ends = typeof streams === 'function' ? await streams() : streams
    const link = new DuplexLink('stdio', this.#context)
    link.channel = openPipe(link, ends, this.#context.limits.maxMessageBytes)
    try {
      return await work({ link, output: ends.output })
    } catch (error) {
      await link.close()
      throw error
    }
  }
}

export interface Pipe {
  readonly link: DuplexLink
  readonly output: StdioStreams['output']
}
