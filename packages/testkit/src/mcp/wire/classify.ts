import { INVALID_PARAMS, INVALID_REQUEST, isRequest, isResponse, type JsonObject, objectOf, RpcError, type RpcMessage } from './json-rpc.ts'
import { type Era, isLegacyVersion, META_CAPABILITIES, META_CLIENT_INFO, META_VERSION, MODERN, UNSUPPORTED_VERSION } from './protocol.ts'

export interface ClassifyInput {
  readonly message: RpcMessage
  /** Value of `MCP-Protocol-Version`. */
  readonly header: string | undefined
  readonly hasSession: boolean
  readonly supported: readonly string[]
}

/**
 * Which era does a POSTed message belong to? The body decides, the header is a cross-check; nothing is remembered from earlier requests.
 * Throws the edge error when it is neither.
 */
export function classify(input: ClassifyInput): Era {
  const { message, header } = input
  if (isResponse(message)) {
    if (header === MODERN) throw new RpcError(INVALID_REQUEST, 'A client never sends a response in this revision', { status: 400 })
    return 'legacy'
  }
  const meta = objectOf(message.params?.['_meta'])
  const version = meta[META_VERSION]
  if (!isRequest(message)) return version === MODERN || header === MODERN ? 'modern' : 'legacy'
  if (typeof version === 'string' && version !== '') return 'modern'
  if (message.method === 'initialize' && version === undefined) return 'legacy'
  if (isLegacyVersion(header)) return 'legacy'
  if (version !== undefined) throw missing(META_VERSION)
  if (header !== undefined) return claimOfHeader(header, input.supported)
  const claims = META_CLIENT_INFO in meta || META_CAPABILITIES in meta
  if (claims && !input.hasSession) throw missing(META_VERSION)
  return 'legacy'
}

/** No version in the body and a header that names no legacy revision. */
function claimOfHeader(header: string, supported: readonly string[]): Era {
  if (header === MODERN || (/^\d{4}-\d\d-\d\d$/.test(header) && header > MODERN)) throw missing(META_VERSION)
  throw new RpcError(UNSUPPORTED_VERSION, `Unsupported protocol version ${header}`, { status: 400, data: { supported, requested: header } })
}

function missing(key: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Missing or malformed params._meta["${key}"]`, { status: 400 })
}

export function metaOf(params: JsonObject | undefined): JsonObject {
  return objectOf(params?.['_meta'])
}
