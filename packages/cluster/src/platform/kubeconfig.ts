export interface KubeconfigAccess {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
}

/** A kubeconfig with one context. JSON is YAML, and needs no quoting of its own. */
export function kubeconfigText({ url, caPem, adminToken }: KubeconfigAccess): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'thv', cluster: { server: url, 'certificate-authority-data': Buffer.from(caPem).toString('base64') } }],
    users: [{ name: 'admin', user: { token: adminToken } }],
    contexts: [{ name: 'thv', context: { cluster: 'thv', user: 'admin', namespace: 'default' } }],
    'current-context': 'thv',
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
