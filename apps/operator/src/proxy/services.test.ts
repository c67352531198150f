import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import { describe, expect, it } from 'vitest'
import { selectorText, serverLabels, serverSelector, workloadLabels } from './labels.ts'
import { proxyNames, serverNames } from './names.ts'
import { runnerRules, workloadAccess } from './rbac.ts'
import { aliasService, aliasTaken, proxyService } from './services.ts'

const spec = (more: Record<string, unknown> = {}) => normaliseMcpServer({ spec: { image: 'x', ...more } }).spec
const input = (name: string, more: Record<string, unknown> = {}) => ({
  kind: 'MCPServer' as const,
  name,
  namespace: 'team-a',
  spec: spec(more),
})

describe('names and labels', () => {
  it('are those that clients and other programs count on', () => {
    expect(proxyNames('MCPServer', 'x')).toEqual({
      deployment: 'x',
      service: 'mcp-x-proxy',
      aliasService: 'x',
      runConfig: 'x-runconfig',
      authz: 'x-authz',
      runnerAccount: 'x-proxy-runner',
    })
    expect(proxyNames('MCPRemoteProxy', 'x')).toMatchObject({ service: 'mcp-x-remote-proxy', runnerAccount: 'x-remote-proxy-runner' })
    expect(serverNames('x')).toEqual({
      statefulSet: 'x',
      service: 'mcp-x',
      headlessService: 'mcp-x-headless',
      account: 'x-sa',
      networkPolicy: 'x-mcp',
    })
    expect(selectorText(workloadLabels('MCPRemoteProxy', 'x'))).toBe(
      'app=mcpremoteproxy,app.kubernetes.io/name=mcpremoteproxy,app.kubernetes.io/instance=x,toolhive=true,toolhive-name=x',
    )
    expect(serverLabels({ name: 'x', transport: 'stdio', proxyPort: 1 })).toEqual({
      toolhive: 'true',
      'toolhive-name': 'x',
      'toolhive-basename': 'x',
      'toolhive-transport': 'stdio',
      'toolhive-port': '1',
    })
  })

  it('fit into the 63 characters of a Service for the longest name that is admitted', () => {
    const longest = 'a'.repeat(46)
    for (const kind of ['MCPServer', 'MCPRemoteProxy'] as const) expect(proxyNames(kind, longest).service.length).toBeLessThanOrEqual(63)
    expect(serverNames(longest).headlessService.length).toBeLessThanOrEqual(63)
  })

  it('never select both the proxy and the server behind it', () => {
    const [proxy, server] = [
      workloadLabels('MCPServer', 'mcpserver'),
      { ...serverLabels({ name: 'mcpserver', transport: 'sse', proxyPort: 1 }), ...serverSelector('mcpserver') },
    ]
    const selects = (selector: Record<string, string>, labels: Record<string, string>) =>
      Object.entries(selector).every(([key, value]) => labels[key] === value)
    expect(selects(serverSelector('mcpserver'), proxy)).toBe(false)
    expect(selects(proxy, server)).toBe(false)
  })
})

describe('aliasService', () => {
  it('is reachable in the cluster only, without overrides', () => {
    const overrides = { proxyService: { annotations: { a: 'b' }, labels: { c: 'd' } } }
    const given = input('demo', { serviceType: 'LoadBalancer', resourceOverrides: overrides, proxyPort: 81 })
    const { service } = aliasService(given)
    expect(proxyService(given).spec?.type).toBe('LoadBalancer')
    expect(service?.spec?.type).toBe('ClusterIP')
    expect(service?.metadata).toEqual({ name: 'demo', namespace: 'team-a', labels: workloadLabels('MCPServer', 'demo') })
    expect(service?.spec?.selector).toEqual(proxyService(given).spec?.selector)
    expect(service?.spec?.ports).toEqual(proxyService(given).spec?.ports)
  })

  it.each(['mcp-x-proxy', 'mcp-x', 'vmcp-x'])('gives way to what else %s may be', (name) => {
    const { service, conditions } = aliasService(input(name))
    expect(service).toBeUndefined()
    expect(conditions).toMatchObject([{ type: 'ServiceAliasSkipped', status: 'True', reason: 'ServiceNameReserved' }])
  })

  it('says whose name it was', () => {
    expect(aliasTaken('MCPServer', 'x')).toMatchObject({ type: 'ServiceAliasSkipped', reason: 'ServiceNameTaken', status: 'True' })
    expect(aliasTaken('MCPServer', 'x').message).toContain('use mcp-x-proxy')
  })
})

describe('workloadAccess', () => {
  const settings = { defaultImagePullSecrets: [] }

  it('gives the runner its own objects by name, and no Secret', () => {
    const rules = runnerRules({ name: 'x', spec: spec() })
    expect(rules).toEqual([
      { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['create'] },
      { apiGroups: ['apps'], resources: ['statefulsets'], resourceNames: ['x'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
      { apiGroups: [''], resources: ['services'], verbs: ['create'] },
      {
        apiGroups: [''],
        resources: ['services'],
        resourceNames: ['mcp-x', 'mcp-x-headless'],
        verbs: ['get', 'list', 'watch', 'patch', 'delete'],
      },
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
      { apiGroups: [''], resources: ['pods/attach'], resourceNames: ['x-0'], verbs: ['create', 'get'] },
      { apiGroups: [''], resources: ['pods'], resourceNames: ['x-0'], verbs: ['delete'] },
    ])
  })

  it('lets it attach to stdio servers only, and to the pods that there are', () => {
    const attach = (more: Record<string, unknown>) =>
      runnerRules({ name: 'x', spec: spec(more) }).filter(({ resources }) => resources?.includes('pods/attach'))
    expect(attach({ transport: 'sse' })).toEqual([])
    for (const more of [{}, { backendReplicas: 0 }]) expect(attach(more)).toMatchObject([{ resourceNames: ['x-0'] }])
    expect(attach({ backendReplicas: 2 })).toMatchObject([{ resourceNames: ['x-0', 'x-1'] }])
  })

  it('makes no account for the pods when the user names one', () => {
    const accounts = (more: Record<string, unknown>) =>
      workloadAccess({ ...input('x', more), settings }).serviceAccounts.map(({ metadata }) => metadata.name)
    expect(accounts({})).toEqual(['x-proxy-runner', 'x-sa'])
    expect(accounts({ serviceAccount: 'mine' })).toEqual(['x-proxy-runner'])
  })

  it('gives the proxy of a remote server an account and no rights', () => {
    const remote = { ...input('x'), kind: 'MCPRemoteProxy' as const, settings }
    expect(workloadAccess(remote)).toMatchObject({
      roles: [],
      roleBindings: [],
      serviceAccounts: [{ automountServiceAccountToken: false }],
    })
    expect(workloadAccess({ ...remote, spec: { ...remote.spec, serviceAccount: 'mine' } }).serviceAccounts).toEqual([])
  })
})
