import { META } from '../envelope.ts'
import { isObject, type JsonObject, type RequestId } from '../json-rpc.ts'

/** The receiver of the progress of a request, by its token. The token is the id of the request, so it is unique too. */
export type ProgressRoutes = Map<RequestId, (progress: JsonObject) => void>

/** Asks for progress under a token of our own; one that a caller brought along belongs to another hop. */
export function withProgressToken(params: JsonObject, token: RequestId): JsonObject {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  return { ...params, _meta: { ...meta, [META.progressToken]: token } }
}
