import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import type { Connection, TlsSettings } from './connection.ts'
import type { ServerUrl } from './server-url.ts'

/** Credentials of one request. */
export interface Credentials {
  readonly authorization: string | undefined
  readonly tls: TlsSettings
}

/** Asks the connection's source. Refuses to send a secret over plain http to another machine. */
export async function credentialsOf(connection: Connection, server: ServerUrl, signal: AbortSignal): Promise<Credentials> {
  signal.throwIfAborted()
  const authorization = await abortable(connection.auth.header(signal), signal)
  if (authorization !== undefined && !server.mayCarryCredentials) {
    throw new ThvError('kubeconfig_invalid', `${server.origin}: credentials are not sent over plain http except to this machine`)
  }
  const certificate = connection.auth.certificate && (await abortable(connection.auth.certificate(signal), signal))
  return { authorization, tls: certificate ? { ...connection.tls, ...certificate } : connection.tls }
}

/** In the words of node:tls. */
export function tlsOptions({ ca, cert, key, serverName, insecureSkipVerify }: TlsSettings) {
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(insecureSkipVerify === true && { rejectUnauthorized: false }),
  }
}
