import { INVALID_PARAMS, isObject, type JsonObject, RpcError, type RpcRequest } from '../wire/json-rpc.ts'
import { META_CAPABILITIES, META_CLIENT_INFO, META_VERSION, UNSUPPORTED_VERSION } from '../wire/protocol.ts'

/** Facts that every modern request states about itself. */
export interface Envelope {
  readonly version: string
  readonly capabilities: JsonObject
  readonly clientInfo: unknown
  readonly meta: JsonObject
}

/** Throws 400 -32602 unless the two required keys are there; clientInfo is optional. */
export function readEnvelope(request: RpcRequest): Envelope {
  const meta = request.params?.['_meta']
  if (!isObject(meta)) throw malformed('params._meta')
  const version = meta[META_VERSION]
  if (typeof version !== 'string' || version === '') throw malformed(`params._meta["${META_VERSION}"]`)
  const capabilities = meta[META_CAPABILITIES]
  if (!isObject(capabilities)) throw malformed(`params._meta["${META_CAPABILITIES}"]`)
  return { version, capabilities, clientInfo: meta[META_CLIENT_INFO], meta }
}

export function unsupportedVersion(requested: string, supported: readonly string[]): RpcError {
  return new RpcError(UNSUPPORTED_VERSION, `Unsupported protocol version: ${requested}`, { status: 400, data: { supported, requested } })
}

function malformed(what: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Missing or malformed ${what}`, { status: 400 })
}
