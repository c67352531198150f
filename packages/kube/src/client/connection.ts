/** Where the API server is and how to prove who we are. Built by `loadKubeconfig`, `inClusterConnection` or by hand. */
export interface Connection {
  /** Base address, such as `https://10.0.0.1:6443`; may carry a path prefix. Plain `http` carries credentials to loopback only. */
  readonly server: string
  readonly tls: TlsSettings
  /** Namespace of the kubeconfig context or of the pod; a default for commands, never applied by the client itself. */
  readonly namespace?: string
  readonly auth: AuthSource
}

/** PEM texts, not paths. */
export interface TlsSettings {
  ca?: string
  cert?: string
  key?: string
  serverName?: string
  insecureSkipVerify?: boolean
}

export interface AuthSource {
  /** The value of the `Authorization` header, or undefined when the connection has none (client certificate, anonymous). */
  header(signal?: AbortSignal): Promise<string | undefined>
  /** A client certificate that comes and changes with the credentials; instead of the one in `tls`. PEM texts. */
  certificate?(signal?: AbortSignal): Promise<{ readonly cert: string; readonly key: string } | undefined>
  /** Called after a 401: the next `header()` or `certificate()` must read its source again. */
  invalidate(): void
}

export const noAuth: AuthSource = { header: async () => undefined, invalidate: () => {} }

export function bearerToken(token: string): AuthSource {
  return { header: async () => `Bearer ${token}`, invalidate: () => {} }
}

export function basicAuth(username: string, password: string): AuthSource {
  const value = `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`
  return { header: async () => value, invalidate: () => {} }
}

/** Visible ASCII without blanks: all that can stand in the header, wider than the grammar of RFC 6750. */
export function isTokenText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
