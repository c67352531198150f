/** Members of the file that are written elsewhere in the resource than below `spec.config`. */
const ELSEWHERE = /^(incomingAuth|outgoingAuth|sessionStorage|passthroughHeaders|trustProxyHeaders|trustedProxies|allowedHosts)\b/

/** Path in the resource of a path in the configuration file. */
export function specPath(path: string): string {
  if (path === '') return 'the configuration file'
  const own = path.replace(/^incomingAuth\.oidc\b/, 'incomingAuth.oidcConfig').replace(/^incomingAuth\.authz\b/, 'incomingAuth.authzConfig')
  return ELSEWHERE.test(path) ? `spec.${own}` : `spec.config.${path}`
}
