import { describe, expect, it } from 'vitest'
import type { ImageProgram } from '../images/image-resolver.ts'
import { hostCommand } from './host-command.ts'
import type { ContainerSpec } from './pod-spec.ts'

const IMAGE: ImageProgram = {
  entrypoint: ['node', 'operator.mjs'],
  env: { NODE_OPTIONS: '--max-semi-space-size=4' },
  imageId: 'own',
  own: true,
  programs: { 'thv-proxyrunner': ['node', 'runner.mjs'], 'thv-operator': ['node', 'operator.mjs'] },
  hosts: { 'thv-proxyrunner': ['host'] },
}
/** As the operator makes it. */
const CONTAINER: ContainerSpec = { name: 'toolhive', image: 'toolhive-ts', command: ['thv-proxyrunner'], args: ['run'] }
const WANTED = {
  KUBERNETES_SERVICE_HOST: '127.0.0.1',
  THV_PEER_USER: '1000',
  THV_RUNCONFIG_CHECKSUM: 'abc',
  POD_NAME: 'web-1',
  OPERATOR_OPENSHIFT: 'false',
  TOOLHIVE_RUNTIME: 'kubernetes',
  TOOLHIVE_SECRET_GITHUB: 'secret',
  XDG_CONFIG_HOME: '/tmp',
  HOME: '/tmp',
  UNSTRUCTURED_LOGS: 'false',
}
const hostOf = (more: Partial<ContainerSpec> = {}, wanted: Record<string, string> = {}, image = IMAGE) =>
  hostCommand({ ...CONTAINER, ...more }, image, { ...WANTED, ...wanted })

describe('a proxy runs in the process of all proxies', () => {
  it('as the operator declares it; the process has nothing of the pod', () => {
    expect(hostOf()).toEqual({ file: 'node', args: ['runner.mjs', 'host'], env: IMAGE.env })
    expect(hostOf({ resources: { requests: { memory: '64Mi' } } })).toBeDefined()
  })

  it.each<[string, Partial<ContainerSpec>, Record<string, string>?]>([
    ['another program', { command: ['thv-operator'] }],
    ['the main program of the image', { command: [] }],
    ['a command with arguments', { command: ['thv-proxyrunner', '--debug'] }],
    ['a shell around it', { command: ['sh', '-c', 'thv-proxyrunner'] }],
    ['a memory limit', { resources: { limits: { memory: '128Mi' } } }],
    ['a working folder', { workingDir: '/data' }],
    ['an open standard input', { stdin: true }],
    ['another runtime', { args: ['run', '--runtime', 'local'] }],
    ['another runtime in a variable', {}, { TOOLHIVE_RUNTIME: 'local' }],
    ['options of Node', {}, { NODE_OPTIONS: '--max-semi-space-size=16' }],
    ['certificates of Node', {}, { NODE_EXTRA_CA_CERTS: '/ca.pem' }],
    ['settings of malloc', {}, { MALLOC_ARENA_MAX: '2' }],
    ['a time zone', {}, { TZ: 'UTC' }],
  ])('but not with %s', (_title, more, wanted) => expect(hostOf(more, wanted)).toBeUndefined())

  it('but not without the setting', () => expect(hostOf({}, {}, { ...IMAGE, hosts: {} })).toBeUndefined())
})
