import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkSourceConfig } from './source-config.ts'

const syncPolicy = { interval: '30m' }

function check(value: unknown, fromApi = false) {
  return checkSourceConfig(value, { path: '/sources/2', fromApi })
}

function problemsOf(value: unknown, fromApi = false): string[] {
  const result = check(value, fromApi)
  return result.ok ? [] : result.problems.map(({ pointer, message }) => `${pointer}: ${message}`)
}

describe('a source as it is configured', () => {
  it.each([
    ['git', { git: { repository: 'https://github.com/stacklok/toolhive-catalog.git', branch: 'main', path: 'data/registry.json' } }],
    ['git with a password', { git: { repository: 'https://git.example.com/a', auth: { username: 'x', passwordFile: '/secrets/t' } } }],
    ['api', { api: { endpoint: 'https://registry.example.com/', timeout: '30s' } }],
    ['one of our own', { api: { endpoint: 'http://host:8080/registry/default', headersFile: '/secrets/headers' } }],
    ['a file', { file: { path: '/data/registry.json' }, format: 'toolhive', strict: true }],
    ['a cluster', { kubernetes: { namespaces: ['a'], labelSelector: 'team=x,tier in (a,b),!old', clusterName: 'east' } }],
    ['another cluster', { kubernetes: { kubeconfig: { path: '/etc/kube', context: 'east' }, crossNamespaceGateway: 'referenceGrant' } }],
    ['an address', { file: { url: 'https://example.com/registry.json?ref=main', timeout: '1m' } }],
  ])('takes %s', (_name, block) => {
    const claims = { team: 'platform', role: ['a', 'b'] }
    const filter = { names: { include: ['io.github.*'], exclude: [] }, tags: { exclude: ['beta'] } }
    expect(check({ name: 'one', ...block, syncPolicy, filter, claims })).toEqual({
      ok: true,
      source: { name: 'one', ...block, intervalMs: 1_800_000, filter, claims },
    })
  })

  it('understands "30s" as thirty seconds [001-017]', () => {
    const source = { name: 'x', file: { path: '/x.json' }, syncPolicy: { interval: '30s' } }
    expect(check(source)).toMatchObject({ ok: true, source: { intervalMs: 30_000 } })
  })

  it('takes a managed one, which has no interval', () => {
    expect(check({ name: 'm', managed: {}, claims: { a: 'b' } })).toEqual({
      ok: true,
      source: { name: 'm', managed: {}, claims: { a: 'b' } },
    })
  })

  it('takes documents inline from the admin API only', () => {
    const inline = { name: 'x', file: { data: '{"servers":{}}' }, syncPolicy }
    expect(problemsOf(inline, true)).toEqual([])
    expect(problemsOf(inline)).toEqual(['/sources/2/file/data: can be given through the admin API only: use path or url'])
  })

  it('sends no file of the server for a user of the admin API', () => {
    const git = { repository: 'https://example.com/x', auth: { username: 'x', passwordFile: '/var/run/secrets/token' } }
    const message = 'cannot be given through the admin API: configure this source in the file'
    expect(problemsOf({ name: 'x', git, syncPolicy }, true)).toEqual([`/sources/2/git/auth/passwordFile: ${message}`])
    const api = { endpoint: 'https://example.com', headersFile: '/etc/passwd' }
    expect(problemsOf({ name: 'x', api, syncPolicy }, true)).toEqual([`/sources/2/api/headersFile: ${message}`])
  })

  const git = { repository: 'https://example.com/x' }
  const api = { endpoint: 'https://example.com' }
  const file = { path: '/x.json' }
  const kubernetes = (block: object) => ({ file: undefined, kubernetes: block })
  it.each<[string, Record<string, unknown>, string]>([
    ['no name', { name: undefined }, '/name: is required'],
    ['capitals in the name', { name: 'Main' }, '/name: must be a DNS label: at most 63 lower-case'],
    ['too long a name', { name: 'a'.repeat(64) }, '/name: must be a DNS label'],
    ['a hyphen at the end', { name: 'a-' }, '/name: must be a DNS label'],
    ['no type', { file: undefined }, ': must have exactly one of git, api, file, kubernetes and managed'],
    ['two types', { git }, ': must have exactly one of git, api, file, kubernetes and managed, not git and file'],
    ['an empty block of YAML', { file: null }, '/file: must be an object'],
    [
      'a namespace that cannot exist [001-060]',
      kubernetes({ namespaces: ['Team_A'] }),
      '/kubernetes/namespaces/0: must be the name of a namespace',
    ],
    ['half a selector [001-059]', kubernetes({ labelSelector: 'a in (b' }), '/kubernetes/labelSelector: label selector'],
    ['a mode that does not exist', kubernetes({ crossNamespaceGateway: 'any' }), '/kubernetes/crossNamespaceGateway: must be one of'],
    ['dots in a cluster name', kubernetes({ clusterName: 'a.b' }), '/kubernetes/clusterName: must be a DNS label'],
    ['a relative kubeconfig', kubernetes({ kubeconfig: { path: 'x' } }), '/kubernetes/kubeconfig/path: must be an absolute path'],
    ['an unknown key of kubernetes', kubernetes({ namespace: 'x' }), '/kubernetes/namespace: is not known here; known are namespaces,'],
    [
      'a debounce that is too short',
      kubernetes({ watch: { debounceInterval: '50ms' } }),
      '/kubernetes/watch/debounceInterval: must be between',
    ],
    [
      'a debounce that is none',
      kubernetes({ watch: { debounceInterval: 'soon' } }),
      '/kubernetes/watch/debounceInterval: must be a duration',
    ],
    ['a Lease with capitals', kubernetes({ leaderElection: { id: 'A' } }), '/kubernetes/leaderElection/id: must be the name of a Lease'],
    [
      'a Lease shorter than its renewal',
      kubernetes({ leaderElection: { leaseDuration: '5s' } }),
      '/kubernetes/leaderElection: leaseDuration must',
    ],
    ['strict for kubernetes', { ...kubernetes({}), strict: true }, '/strict: has no meaning for a kubernetes source'],
    ['the format of kubernetes [001-019]', { ...kubernetes({}), format: 'toolhive' }, '/format: of a kubernetes source is always upstream'],
    ['an unknown key', { intervall: '1m' }, '/intervall: is not known here; known are name, git,'],
    ['an unknown key in a block', { file: { ...file, patth: 'x' } }, '/file/patth: is not known here; known are path, url, data, timeout'],
    ['something in managed', { file: undefined, syncPolicy: undefined, managed: { a: 1 } }, '/managed/a: takes no members'],
    ['an interval for managed', { file: undefined, managed: {} }, '/syncPolicy: has no meaning for a managed source'],
    ['an empty policy', { syncPolicy: {} }, '/syncPolicy/interval: is required'],
    ['an interval without a unit', { syncPolicy: { interval: '30' } }, '/syncPolicy/interval: must be a duration such as 30s'],
    ['an interval that is a number', { syncPolicy: { interval: 30 } }, '/syncPolicy/interval: must be a string'],
    ['an interval of nothing', { syncPolicy: { interval: '0s' } }, '/syncPolicy/interval: must be at least 1s'],
    ['an interval of ten years', { syncPolicy: { interval: '90000h' } }, '/syncPolicy/interval: must be at most 8760h'],
    ['git by ssh', { file: undefined, git: { repository: 'git@github.com:a/b.git' } }, '/git/repository: must be an absolute http'],
    ['git by file', { file: undefined, git: { repository: 'file:///etc' } }, '/git/repository: must be an absolute http or https URL'],
    ['git without repository', { file: undefined, git: {} }, '/git/repository: is required'],
    ['branch and tag', { file: undefined, git: { ...git, branch: 'a', tag: 'b' } }, '/git: at most one of branch, tag and commit'],
    ['a branch that is an option', { file: undefined, git: { ...git, branch: '--upload-pack=x' } }, '/git/branch: must be the name'],
    ['half a commit', { file: undefined, git: { ...git, commit: 'abc123' } }, '/git/commit: must be the full hash of a commit'],
    ['a path that leads out', { file: undefined, git: { ...git, path: '../x' } }, '/git/path: must be a path inside the repository'],
    ['half an auth', { file: undefined, git: { ...git, auth: { username: 'x' } } }, '/git/auth/passwordFile: is required'],
    [
      'a relative password file',
      { file: undefined, git: { ...git, auth: { username: 'x', passwordFile: 'x' } } },
      '/git/auth/passwordFile: must be an absolute path',
    ],
    [
      'an endpoint with a path of the API',
      { file: undefined, api: { endpoint: 'https://x.com/v0.1/servers' } },
      '/api/endpoint: must be the',
    ],
    ['an endpoint with a query', { file: undefined, api: { endpoint: 'https://x.com/?a' } }, '/api/endpoint: must not have a query'],
    ['too long a timeout', { file: undefined, api: { ...api, timeout: '6m' } }, '/api/timeout: must be at most 5m'],
    ['a timeout of nothing', { file: undefined, api: { ...api, timeout: '-1s' } }, '/api/timeout: must be greater than 0'],
    ['the format of api', { file: undefined, api, format: 'toolhive' }, '/format: of an api source is always upstream'],
    ['an unknown format', { format: 'xml' }, '/format: must be one of auto, toolhive, upstream'],
    ['neither path nor url', { file: {} }, '/file: must have exactly one of path and url'],
    ['path and url', { file: { path: '/x', url: 'https://x.com' } }, '/file: must have exactly one of path and url, not path and url'],
    ['a relative path', { file: { path: 'data/registry.json' } }, '/file/path: must be an absolute path'],
    ['a timeout for a path', { file: { path: '/x', timeout: '1s' } }, '/file/timeout: goes with url only'],
    ['a file of a scheme', { file: { url: 'file:///etc/passwd' } }, '/file/url: must be an absolute http or https URL'],
    ['a password in the address', { file: { url: 'https://u:hunter2@x.com/a' } }, '/file/url: must not carry a user name or password'],
    ['a broken pattern', { filter: { names: { include: ['a['] } } }, "/filter/names/include/0: is no pattern: has a '[' without ']'"],
    ['a filter of another shape', { filter: { names: ['x'] } }, '/filter/names: must be an object'],
    ['a claim that is a number', { claims: { 'a/b': 5 } }, '/claims/a~1b: must be a string or a list of strings, not number'],
    ['a claim with a list of numbers', { claims: { a: [1] } }, '/claims/a: must be a string or a list of strings, not a list with'],
    ['a claim with an empty list', { claims: { a: [] } }, '/claims/a: must be a string or a list of strings, not an empty list'],
  ])('refuses %s', (_name, change, expected) => {
    const value = Object.fromEntries(Object.entries({ name: 'x', file, syncPolicy, ...change }).filter(([, v]) => v !== undefined))
    const problems = problemsOf(value)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(`/sources/2${expected}`)
    expect(problems[0]).not.toContain('hunter2')
  })

  it('reads a cluster every 30 seconds where no interval is given', () => {
    expect(check({ name: 'x', kubernetes: {} })).toEqual({ ok: true, source: { name: 'x', kubernetes: {}, intervalMs: 30_000 } })
  })

  it('takes no cluster from the admin API', () => {
    expect(problemsOf({ name: 'x', kubernetes: {} }, true)).toEqual([
      '/sources/2/kubernetes: cannot be given through the admin API: configure this source in the file',
    ])
  })

  it('needs no interval', () => {
    expect(check({ name: 'x', file: { path: '/x.json' } })).toEqual({ ok: true, source: { name: 'x', file: { path: '/x.json' } } })
  })

  it('reports everything at once', () => {
    expect(problemsOf({ name: 'A', git: { branch: 'a', tag: 'b' }, claims: { x: 1 }, more: 1 })).toHaveLength(5)
  })

  it('never throws, whatever it is given', () => {
    const names = fc.constantFrom('name', 'git', 'api', 'file', 'managed', 'filter', 'claims', 'syncPolicy', '__proto__', 'names', 'auth')
    const value = fc.letrec((tie) => ({
      node: fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(tie('node')), fc.dictionary(names, tie('node'))),
    })).node
    fc.assert(fc.property(value, fc.boolean(), (given, fromApi) => void expect(check(given, fromApi).ok).toBeTypeOf('boolean')))
  })
})
