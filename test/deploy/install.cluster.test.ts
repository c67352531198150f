import { spawnSync } from 'node:child_process'
import { describeHelm } from '@thv/testkit/helm/describe-helm'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { CRD_CHART, HELM_LIMIT_MS, OPERATOR_CHART } from './charts.ts'

/* The way that docs/how-to/install-the-operator.md describes, on an empty cluster. */

/** helm says that it follows the chart's link to deploy/crds. */
const LINK_NOTICE = /^walk\.go:\d+: found symbolic link in path: .*\n/gm

const NAMESPACE = ['--namespace', 'toolhive-system']

describeHelm('installing with helm', () => {
  let server: TestServer
  let helm: Helm
  beforeAll(async () => {
    helm = await openHelm()
    server = await startTestServer()
  }, HELM_LIMIT_MS)
  afterAll(() => server?.stop())

  /** Fails with what helm said. */
  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await helm.run([...args, '--kubeconfig', server.kubeconfigPath])
    expect({ code, stderr: stderr.replace(LINK_NOTICE, '') }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  function names(resource: string, ...more: string[]): string[] {
    const args = ['--kubeconfig', server.kubeconfigPath, 'get', resource, '--output', 'name', ...more]
    const { status, stdout, stderr } = spawnSync(server.kubectlPath, args, { encoding: 'utf8', timeout: 60_000 })
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
    return stdout.split('\n').filter(Boolean)
  }

  const crds = () => names('crd').filter((name) => name.endsWith('.toolhive.stacklok.dev'))

  it('the operator first: the notes say that the definitions are missing', async () => {
    const notes = await run('install', 'toolhive-operator', OPERATOR_CHART, ...NAMESPACE, '--create-namespace')
    expect(notes).toContain('watches all namespaces')
    expect(notes).toContain('Install the chart toolhive-operator-crds')
    expect(names('deployment', ...NAMESPACE)).toEqual(['deployment.apps/toolhive-operator'])
  })

  it('the definitions', async () => {
    await run('install', 'toolhive-operator-crds', CRD_CHART)
    expect(crds()).toHaveLength(9)
  })

  it('an upgrade to namespaces takes the rights on the cluster away', async () => {
    expect(names('clusterrole')).toContain('clusterrole.rbac.authorization.k8s.io/toolhive-operator')
    const values = ['--set', 'operator.rbac.scope=namespace', '--set', 'operator.rbac.allowedNamespaces={default}']
    const notes = await run('upgrade', 'toolhive-operator', OPERATOR_CHART, ...NAMESPACE, ...values)
    expect(notes).toContain('watches default')
    expect(notes).not.toContain('Install the chart')
    expect(names('clusterrole')).not.toContain('clusterrole.rbac.authorization.k8s.io/toolhive-operator')
    expect(names('clusterrolebinding')).not.toContain('clusterrolebinding.rbac.authorization.k8s.io/toolhive-operator')
    expect(names('role', '--namespace', 'default')).toEqual(['role.rbac.authorization.k8s.io/toolhive-operator'])
  })

  it('removing both leaves the definitions and nothing else', async () => {
    await run('uninstall', 'toolhive-operator', ...NAMESPACE)
    await run('uninstall', 'toolhive-operator-crds')
    expect(crds()).toHaveLength(9)
    for (const kind of ['deployment', 'service', 'serviceaccount', 'role', 'rolebinding', 'secret']) {
      expect(names(kind, ...NAMESPACE).filter((name) => !name.endsWith('/default'))).toEqual([])
    }
    expect(names('role', '--namespace', 'default')).toEqual([])
  })

  it('definitions that stayed are taken over by the next installation', async () => {
    await run('install', 'toolhive-operator-crds', CRD_CHART, '--set', 'crds.keep=false')
    await run('uninstall', 'toolhive-operator-crds')
    // The API server empties a kind before it lets the definition go.
    await vi.waitFor(() => expect(crds()).toEqual([]), { timeout: 60_000, interval: 500 })
  })
})
