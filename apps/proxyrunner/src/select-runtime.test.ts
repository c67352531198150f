import { describe, expect, it } from 'vitest'
import { configOf, memoryLog, testFolder } from './runtime/testing/runtime-fixtures.ts'
import { chooseRuntime, createRuntime } from './select-runtime.ts'

describe('chooseRuntime', () => {
  it.each<[string, Record<string, string>, string]>([
    ['local', { TOOLHIVE_RUNTIME: 'kubernetes', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'local'],
    ['kubernetes', {}, 'kubernetes'],
    ['auto', {}, 'local'],
    ['auto', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'kubernetes'],
    ['auto', { TOOLHIVE_RUNTIME: 'kubernetes' }, 'kubernetes'],
    ['auto', { TOOLHIVE_RUNTIME: 'local', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'local'],
  ])('%s with %j', (choice, env, expected) => {
    expect(chooseRuntime(choice, env)).toBe(expected)
  })

  it('refuses what is neither', () => {
    expect(() => chooseRuntime('docker', {})).toThrow(/--runtime expects one of auto, kubernetes, local/)
    expect(() => chooseRuntime('auto', { TOOLHIVE_RUNTIME: 'docker' })).toThrow(/TOOLHIVE_RUNTIME expects/)
  })
})

describe('createRuntime', () => {
  it('makes the local one', async () => {
    await using folder = await testFolder()
    const config = configOf({ image: `exec://${process.execPath}` })
    const runtime = await createRuntime({ runtime: 'auto', config, log: memoryLog(), env: {}, dataDir: folder.path })
    expect(runtime.name).toBe('local')
    await runtime.close()
  })

  it('makes the Kubernetes one from a kubeconfig, and says when there is none', async () => {
    await using folder = await testFolder()
    const kubeconfig = await folder.write(
      'config',
      JSON.stringify({
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'k', namespace: 'n' } }],
        clusters: [{ name: 'k', cluster: { server: 'http://127.0.0.1:1' } }],
      }),
    )
    const options = { runtime: 'kubernetes', log: memoryLog(), env: { OPERATOR_OPENSHIFT: 'false' }, kubeconfig } as const
    const runtime = await createRuntime({ ...options, config: configOf({ transport: 'sse', target_port: 8080 }) })
    expect(runtime.name).toBe('kubernetes')
    await runtime.close()
    const stdio = await createRuntime({ ...options, config: configOf({}) })
    expect(stdio.stdioCapacity).toBe(1)
    await stdio.close()
    await expect(createRuntime({ ...options, kubeconfig: '/nowhere', config: configOf({}) })).rejects.toMatchObject({
      code: 'kubeconfig_invalid',
    })
  })

  it('is not asked for a server that runs elsewhere', async () => {
    const config = configOf({ transport: 'sse', image: '', remote_url: 'https://mcp.example.com' })
    await expect(createRuntime({ runtime: 'auto', config, log: memoryLog(), env: {} })).rejects.toThrow(RangeError)
  })
})
