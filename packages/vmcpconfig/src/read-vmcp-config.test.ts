import { checkWorkflow } from '@thv/workflow/check-workflow'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { MAX_CONFIG_BYTES, readVmcpConfig, readVmcpDocument } from './read-vmcp-config.ts'
import { unsupportedParts } from './unsupported-parts.ts'
import { invalidVmcpConfig } from './vmcp-config-errors.ts'

const MINIMAL = {
  name: 'eng',
  groupRef: 'engineering',
  backends: [{ name: 'github', url: 'https://mcp.github.example/mcp' }],
  incomingAuth: { type: 'anonymous' },
  outgoingAuth: { source: 'inline' },
  aggregation: { conflictResolution: 'prefix' },
}

type Document = Record<string, unknown>

function problemsOf(change: Document): string[] {
  const read = readVmcpDocument({ ...MINIMAL, ...change })
  return read.ok ? [] : read.problems.map(({ path, message }) => `${path} ${message}`)
}

describe('the configuration file of a virtual server', () => {
  it('fills in the defaults', () => {
    const read = readVmcpConfig(stringify(MINIMAL))
    if (!read.ok) throw new Error(JSON.stringify(read.problems))
    expect(read.config).toMatchObject({
      backends: [{ name: 'github', transport: 'streamable-http', metadata: {} }],
      aggregation: {
        conflictResolutionConfig: { prefixFormat: '{workload}_', priorityOrder: [], winners: {}, selectorArgument: 'backend' },
        defaultToolVisibility: 'allow',
        tools: [],
      },
      operational: {
        timeouts: { default: '30s', perWorkload: {}, perTool: {} },
        failureHandling: {
          healthCheckInterval: '30s',
          unhealthyThreshold: 3,
          partialFailureMode: 'best_effort',
          circuitBreaker: { enabled: false, failureThreshold: 5, timeout: '60s' },
        },
      },
      sessionStorage: { provider: 'memory' },
      passthroughHeaders: [],
    })
    expect(unsupportedParts(read.config)).toEqual([])
  })

  it('keeps the given members of a block beside its defaults', () => {
    const read = readVmcpDocument({ ...MINIMAL, operational: { failureHandling: { circuitBreaker: { enabled: true } } } })
    expect(read).toMatchObject({
      config: { operational: { timeouts: { default: '30s' }, failureHandling: { circuitBreaker: { enabled: true, timeout: '60s' } } } },
    })
  })

  it.each<[string, Document, string]>([
    ['an unknown member', { colour: 'red' }, 'colour is not a known field'],
    ['an unknown nested member', { operational: { timeouts: { total: '3s' } } }, 'operational.timeouts.total is not a known field'],
    ['another case', { GroupRef: 'x' }, 'GroupRef must be written as groupRef'],
    ['a wrong type', { name: 7 }, 'name expects a text that is not empty, got a number'],
    ['a wrong type inside a list', { backends: ['x'] }, 'backends[0] expects an object, got a text'],
    ['a missing member', { groupRef: undefined }, 'groupRef is required: expects a text that is not empty'],
    ['a URL with a password', { backends: [{ name: 'a', url: 'https://u:p@h/mcp' }] }, 'backends[0].url expects an http or https URL'],
    ['a repeated backend', { backends: [MINIMAL.backends[0], MINIMAL.backends[0]] }, 'backends[1].name is the name of backends[0] already'],
    [
      'a CA bundle of another kind of backend',
      { backends: [{ name: 'a', url: 'https://h/', caBundlePath: '/x/ca.crt' }] },
      'backends[0].caBundlePath is for backends of type entry',
    ],
    [
      'a CA bundle outside of its folder',
      { backends: [{ name: 'a', url: 'https://h/', type: 'entry', caBundlePath: '/etc/../x' }] },
      'backends[0].caBundlePath must be an absolute path without ".."',
    ],
    ['a trusted proxy that is a name', { trustedProxies: ['gateway.example'] }, 'trustedProxies[0] expects an IP address or a range'],
    ['a trusted range that is too long', { trustedProxies: ['10.0.0.0/33'] }, 'trustedProxies[0] expects an IP address or a range'],
    ['oidc without settings', { incomingAuth: { type: 'oidc' } }, 'incomingAuth.oidc is required beside type oidc'],
    [
      'cedar without policies',
      { incomingAuth: { type: 'anonymous', authz: { type: 'cedar' } } },
      'incomingAuth.authz.policies is required beside type cedar',
    ],
    [
      'policies without an engine',
      { incomingAuth: { type: 'anonymous', authz: { type: 'none', policies: ['forbid(principal, action, resource);'] } } },
      'incomingAuth.authz.policies must not stand beside type none',
    ],
    [
      'authentication for an unknown backend',
      { outgoingAuth: { source: 'inline', backends: { gitlab: { type: 'unauthenticated' } } } },
      'outgoingAuth.backends.gitlab names no backend of this file',
    ],
    [
      'a missing block of authentication',
      { outgoingAuth: { source: 'inline', default: { type: 'header_injection' } } },
      'outgoingAuth.default.headerInjection is required beside type header_injection',
    ],
    [
      'two values of one header',
      {
        outgoingAuth: {
          source: 'inline',
          default: { type: 'header_injection', headerInjection: { headerName: 'X-A', headerValue: 's3cret', headerValueEnv: 'A' } },
        },
      },
      'outgoingAuth.default.headerInjection expects exactly one of headerValue and headerValueEnv',
    ],
    [
      'priority without an order',
      { aggregation: { conflictResolution: 'priority' } },
      'aggregation.conflictResolutionConfig.priorityOrder is required beside conflictResolution priority',
    ],
    [
      'winners beside another strategy',
      { aggregation: { conflictResolution: 'prefix', conflictResolutionConfig: { winners: { a: 'github' } } } },
      'aggregation.conflictResolutionConfig.winners is for conflictResolution manual',
    ],
    ['manual without a decision', { aggregation: { conflictResolution: 'manual' } }, 'aggregation.tools expects an entry'],
    [
      'a workload twice',
      { aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'a' }, { workload: 'a' }] } },
      'aggregation.tools[1].workload has an entry already',
    ],
    [
      'an override of annotations alone',
      { aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'a', overrides: { x: { annotations: {} } } }] } },
      'aggregation.tools[0].overrides.x expects a name or a description',
    ],
    [
      'a listed backend whose tools are all hidden',
      {
        aggregation: {
          conflictResolution: 'priority',
          defaultToolVisibility: 'deny',
          conflictResolutionConfig: { priorityOrder: ['github'] },
        },
      },
      'aggregation.conflictResolutionConfig.priorityOrder names github, which needs an entry in tools',
    ],
    ['a limit of nothing', { operational: { toolResults: { maxBytes: 0 } } }, 'operational.toolResults.maxBytes expects'],
    ['a duration of zero', { operational: { timeouts: { default: '0s' } } }, 'operational.timeouts.default expects a duration above zero'],
    [
      'a check that outlasts its interval',
      { operational: { failureHandling: { healthCheckInterval: '5s', healthCheckTimeout: '5s' } } },
      'operational.failureHandling.healthCheckTimeout must be shorter than healthCheckInterval',
    ],
    [
      'a circuit that closes at once',
      { operational: { failureHandling: { circuitBreaker: { timeout: '10ms' } } } },
      'operational.failureHandling.circuitBreaker.timeout must be at least 1s',
    ],
    [
      'a hidden tool of no backend',
      { aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'typo', exclude: ['x'] }] } },
      'aggregation.tools[0].workload names no backend',
    ],
    [
      'a limit of no backend',
      { operational: { timeouts: { perWorkload: { typo: '1s' } } } },
      'operational.timeouts.perWorkload.typo names no backend',
    ],
    [
      'a priority of no backend',
      { aggregation: { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['typo'] } } },
      'aggregation.conflictResolutionConfig.priorityOrder[0] names no backend',
    ],
    [
      'a winner that is no backend',
      { aggregation: { conflictResolution: 'manual', conflictResolutionConfig: { winners: { x: 'typo' } } } },
      'aggregation.conflictResolutionConfig.winners.x names no backend',
    ],
    [
      'an argument without its strategy',
      { aggregation: { conflictResolution: 'prefix', conflictResolutionConfig: { selectorArgument: 'where' } } },
      'aggregation.conflictResolutionConfig.selectorArgument is for conflictResolution selector',
    ],
    ['an address beside memory', { sessionStorage: { address: 'r:6379' } }, 'sessionStorage.address is for provider redis'],
    ['a database beside memory', { sessionStorage: { db: 2 } }, 'sessionStorage.db is for provider redis'],
    ['credentials that pass through', { passthroughHeaders: ['AUTHORIZATION'] }, 'passthroughHeaders[0] must not be AUTHORIZATION'],
    ['steps that nothing judges', { workflows: { authorizeSteps: true } }, 'workflows.authorizeSteps needs policies in incomingAuth.authz'],
    ['a setting of a service that is not there', { optimizer: { embeddingModel: 'm' } }, 'optimizer.embeddingModel needs embeddingService'],
    ['a tool that is always listed', { optimizer: { alwaysListed: ['find_tool'] } }, 'optimizer.alwaysListed[0] is find_tool'],
    ['a tool that is listed twice', { optimizer: { alwaysListed: ['a', 'a'] } }, 'optimizer.alwaysListed[1] is in the list already'],
    ['too many results', { optimizer: { maxToolsToReturn: 51 } }, 'optimizer.maxToolsToReturn'],
    ['tool search with a misspelled field', { optimizer: { maxTools: 5 } }, 'optimizer.maxTools is not a known field'],
    [
      'a provider to exchange that is not there',
      {
        outgoingAuth: {
          source: 'inline',
          default: { type: 'token_exchange', tokenExchange: { tokenUrl: 'https://sts.example.com', subjectProviderName: 'x' } },
        },
      },
      'outgoingAuth.default.tokenExchange.subjectProviderName needs authServer, whose providers it names',
    ],
    [
      'a provider of claims that is not there',
      {
        incomingAuth: {
          type: 'anonymous',
          authz: { type: 'cedar', policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'x' },
        },
      },
      'incomingAuth.authz.primaryUpstreamProvider needs authServer, whose providers it names',
    ],
    ['a header that is none', { passthroughHeaders: ['a b'] }, 'passthroughHeaders[0] is not a valid header name'],
  ])('rejects %s by name', (_, change, expected) => {
    const problems = problemsOf(change)
    expect(problems.some((problem) => problem.startsWith(expected))).toBe(true)
    expect(problems.join()).not.toContain('s3cret')
  })

  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x]',
    ...[...'bcdefghi'].map((c, i) => `${c}: &${c} [${`*${'abcdefghi'[i]}, `.repeat(9)}]`),
  ].join('\n')
  it.each([
    ['text that is no YAML', 'name: "eng', 'is not valid YAML at line 1'],
    ['a repeated key', 'name: a\nname: b', 'is not valid YAML at line 2, column 1: a key is repeated'],
    ['aliases', bomb, 'uses aliases, which are not accepted'],
    ['a megabyte', `name: ${'x'.repeat(MAX_CONFIG_BYTES)}`, 'is larger than'],
    ['brackets without end', '['.repeat(100_000), 'is nested too deeply'],
    ['deep blocks', Array.from({ length: 900 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), 'is not a known field'],
    ['a list', '- a', 'expects an object, got a list'],
    ['nothing', '', 'expects an object, got null'],
  ])('rejects a file with %s', (_, text, expected) => {
    const read = readVmcpConfig(text)
    expect(read.ok ? [] : read.problems.map(({ message }) => message)).toContainEqual(expect.stringContaining(expected))
  })

  it('never quotes a file that is not valid YAML', () => {
    const read = readVmcpConfig('incomingAuth: {oidc: {clientSecret: s3cret')
    expect(JSON.stringify(read)).not.toContain('s3cret')
  })

  it.each<[Document, string]>([
    [{ incomingAuth: { type: 'local' } }, 'incomingAuth.type'],
    [{ outgoingAuth: { source: 'inline', default: { type: 'aws_sts', awsSts: {} } } }, 'outgoingAuth.default.type'],
    [{ optimizer: { embeddingService: 'http://h' } }, 'optimizer.embeddingService'],
    [{ codeMode: {} }, 'codeMode'],
    [{ operational: { retry: { on: ['timeout'] } } }, 'operational.retry.on'],
  ])('names a part that is not built: %j', (change, path) => {
    const read = readVmcpDocument({ ...MINIMAL, ...change })
    if (!read.ok) throw new Error(JSON.stringify(read.problems))
    expect(unsupportedParts(read.config).map((part) => part.path)).toContain(path)
  })
})

describe('composite tools of the file', () => {
  const STEP = { id: 'a', tool: 'github.search' }
  const TOOL = { name: 'find', description: 'Finds it.', steps: [STEP] }
  const withTool = (change: Document) => problemsOf({ compositeTools: [{ ...TOOL, ...change }] })
  const withStep = (change: Document) => withTool({ steps: [{ ...STEP, ...change }] })

  it('accepts the shape of the resource', () => {
    const forEach = {
      id: 'all',
      type: 'forEach',
      dependsOn: ['a'],
      collection: '{{json .steps.a.output.items}}',
      step: { tool: 'github.get' },
    }
    const ask = {
      id: 'ask',
      type: 'elicitation',
      message: 'Go on?',
      schema: { type: 'object', properties: {} },
      onDecline: { action: 'continue' },
    }
    const onError = { action: 'retry', retryCount: 3, retryDelay: '2s' }
    const read = readVmcpDocument({
      ...MINIMAL,
      compositeTools: [{ ...TOOL, timeout: '10m', annotations: { title: 'Find' }, steps: [{ ...STEP, onError }, ask, forEach] }],
      workflows: { maxParallelSteps: 3 },
    })
    if (!read.ok) throw new Error(JSON.stringify(read.problems))
    expect(read.config.workflows).toEqual({ authorizeSteps: false, maxParallelSteps: 3 })
    expect(unsupportedParts(read.config)).toEqual([])
  })

  it.each<[string, string[], string]>([
    ['no steps', withTool({ steps: [] }), 'compositeTools[0].steps is empty'],
    [
      'too many steps',
      withTool({ steps: Array.from({ length: 101 }, (_, i) => ({ ...STEP, id: `s${i}` })) }),
      'compositeTools[0].steps has more',
    ],
    ['an unknown member', withTool({ retries: 1 }), 'compositeTools[0].retries is not a known field'],
    ['an unknown member of a step', withStep({ onFailure: {} }), 'compositeTools[0].steps[0].onFailure is not a known field'],
    ['a wrong type', withStep({ tool: 7 }), 'compositeTools[0].steps[0].tool expects workload.tool'],
    ['a name that is none', withTool({ name: 'a b' }), 'compositeTools[0].name expects a name of letters'],
    ['a missing description', withTool({ description: undefined }), 'compositeTools[0].description is required'],
    ['no tool', withStep({ tool: undefined }), 'compositeTools[0].steps[0].tool is required beside type tool'],
    ['a field of another type', withStep({ message: 'x' }), 'compositeTools[0].steps[0].message must not stand beside type tool'],
    ['a retry without a count', withStep({ onError: { action: 'retry' } }), 'compositeTools[0].steps[0].onError.retryCount must be'],
    ['a delay without a count', withStep({ onError: { retryDelay: '1s' } }), 'compositeTools[0].steps[0].onError.retryDelay has no effect'],
    ['a wrong duration', withStep({ timeout: 'soon' }), 'compositeTools[0].steps[0].timeout expects a duration'],
    ['a name twice', problemsOf({ compositeTools: [TOOL, TOOL] }), 'compositeTools[1].name is the name of compositeTools[0] already'],
    [
      'too many tools',
      problemsOf({ compositeTools: Array.from({ length: 65 }, (_, i) => ({ ...TOOL, name: `t${i}` })) }),
      'compositeTools has more',
    ],
    ['parallel steps without end', problemsOf({ workflows: { maxParallelSteps: 0 } }), 'workflows.maxParallelSteps expects'],
  ])('rejects %s by name', (_, problems, expected) => {
    expect(problems).toContainEqual(expect.stringContaining(expected))
  })

  it('shows the texts of the one check of composite tools', () => {
    const steps = [
      { ...STEP, dependsOn: ['b'] },
      { id: 'b', tool: 'github.get', dependsOn: ['a'], arguments: { x: '{{.params.y}}' } },
    ]
    const compositeTools = [{ ...TOOL, steps }]
    const read = readVmcpDocument({ ...MINIMAL, compositeTools })
    const own = checkWorkflow(compositeTools[0] as never, 'compositeTools[0]').problems.map(({ message }) => message)
    expect(own.length).toBeGreaterThan(1)
    expect(read.ok ? [] : read.problems.map(({ message }) => message)).toEqual(own)
    const { message } = invalidVmcpConfig('f.yaml', read.ok ? [] : read.problems)
    expect(message).toBe(`configuration f.yaml has ${own.length} problems: ${own.join('; ')}`)
  })
})
