import { type ClientContext, clientContext } from '../client-context.ts'
import { DuplexLink } from '../duplex-link.ts'
import type { Engine } from '../engine.ts'
import { EngineClient } from '../engine-client.ts'
import { LegacyEngine } from '../legacy-engine.ts'
import { createLegacyMemory, type LegacyMemory } from '../legacy-memory.ts'
import type { ClientOptions, McpClient } from '../mcp-client.ts'
import { type EndpointOptions, HttpEndpoint } from './http-endpoint.ts'
import { openSseChannel } from './sse-channel.ts'

export interface HttpSseOptions extends Omit<ClientOptions, 'era'>, EndpointOptions {}

/** A client of a server that is known to speak HTTP+SSE of 2024-11-05; the URL is that of its event stream. Legacy without a probe. */
export function createHttpSseClient(options: HttpSseOptions): McpClient {
  const context = clientContext(options)
  const endpoint = new HttpEndpoint(options)
  const memory = createLegacyMemory()
  return new EngineClient(context, { open: (signal) => openSseEngine({ endpoint, context, memory, signal }) })
}

export interface SseEngineOptions {
  readonly endpoint: HttpEndpoint
  readonly context: ClientContext
  readonly memory: LegacyMemory
  readonly signal: AbortSignal
}

export async function openSseEngine({ endpoint, context, memory, signal }: SseEngineOptions): Promise<Engine> {
  const link = new DuplexLink('sse', context)
  try {
    link.channel = await openSseChannel(link, { endpoint, context, signal })
    return await LegacyEngine.open({ link, context, memory, signal })
  } catch (error) {
    await link.close()
    throw error
  }
}
