import { sendJson } from '@thv/http/server/respond'
import { ApiError } from './http/api-error.ts'
import type { ApiRequest } from './http/route.ts'
import { registryOf } from './http/visible-view.ts'

/* Requests of the standard's own tools before they read or publish. */

const NO_STORE = { headers: ['Cache-Control', 'no-store'] }

export function registryHealth(request: ApiRequest): void {
  registryOf(request)
  sendJson(request.exchange, { status: 'ok' }, NO_STORE)
}

export function registryPing(request: ApiRequest): void {
  registryOf(request)
  sendJson(request.exchange, { pong: true }, NO_STORE)
}

export function registryVersion(request: ApiRequest): void {
  registryOf(request)
  const { version, commit, buildDate } = request.api.version
  sendJson(request.exchange, { version, git_commit: commit, build_time: buildDate }, NO_STORE)
}

const TOKEN_SECONDS = 3_600

/** It is not checked: where tokens count, they come from an identity provider, or from a file. */
export function anonymousToken(request: ApiRequest): void {
  registryOf(request)
  const { access, clock } = request.api
  if (!access.anonymous) throw new ApiError(404, 'tokens are not given here: sign in with the identity provider')
  if (access.writesNeedToken)
    throw new ApiError(403, 'tokens are not given here: publish with the token in the file of auth.writeTokenFile')
  sendJson(request.exchange, { registry_token: 'anonymous', expires_at: Math.floor(clock.now() / 1000) + TOKEN_SECONDS }, NO_STORE)
}
