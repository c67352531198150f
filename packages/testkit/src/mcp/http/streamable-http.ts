import type { IncomingMessage, ServerResponse } from 'node:http'
import { createLegacyHttp, type LegacyHttp } from '../legacy/legacy-http.ts'
import { postModern, refuseLegacy } from '../modern/modern-http.ts'
import { supportedVersions, type World } from '../state/world.ts'
import { classify } from '../wire/classify.ts'
import { isRequest, RpcError, type RpcMessage } from '../wire/json-rpc.ts'
import { type Era, MODERN } from '../wire/protocol.ts'
import { refuse } from '../wire/refuse.ts'
import { readMessage } from './body.ts'

export interface StreamableHttp {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  readonly legacy: LegacyHttp
}

/** The one endpoint of streamable HTTP, for both eras. */
export function createStreamableHttp(world: World): StreamableHttp {
  const legacy = createLegacyHttp(world)

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let message: RpcMessage | undefined
    try {
      if (request.method !== 'POST') return other(request, response)
      if (!acceptsBoth(request)) return refuse(response, { status: 406 })
      message = await readMessage(request, world.options.maxBodyBytes)
      await post(request, response, message)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const id = message && isRequest(message) ? { id: message.id } : {}
      refuse(response, { status: error.status, error, ...id })
    }
  }

  async function post(request: IncomingMessage, response: ServerResponse, message: RpcMessage): Promise<void> {
    if (eraOf(request, message) === 'modern') return postModern(world, { request, response }, message)
    if (world.era === 'modern') return refuseLegacy(world, response, message)
    return legacy.post(request, response, message)
  }

  /** A server of the old revisions never looks at the envelope. */
  function eraOf(request: IncomingMessage, message: RpcMessage): Era {
    if (world.era === 'legacy') return 'legacy'
    const header = request.headers['mcp-protocol-version']
    return classify({
      message,
      header: typeof header === 'string' ? header : undefined,
      hasSession: legacy.hasSession(request),
      supported: supportedVersions(world),
    })
  }

  function other(request: IncomingMessage, response: ServerResponse): void {
    const modern = world.era === 'modern' || (world.era === 'dual' && request.headers['mcp-protocol-version'] === MODERN)
    if (modern) refuse(response, { status: 405, headers: { allow: 'POST' } })
    else legacy.other(request, response)
  }

  return { handle, legacy }
}

function acceptsBoth(request: IncomingMessage): boolean {
  const accept = request.headers.accept ?? ''
  return accept.includes('application/json') && accept.includes('text/event-stream')
}
