import { describe, expect, test } from 'vitest'
import type { RunConfigDocument } from './contribution.ts'
import { joinRunConfig, lacksProtection, renderRunConfig } from './run-config-document.ts'

const document: RunConfigDocument = { schema_version: 'v0.1.0', name: 'web', image: 'example/server:1', transport: 'stdio', port: 8080 }

describe('renderRunConfig', () => {
  test('writes a document that the runner reads', () => {
    const result = renderRunConfig(document, { live: undefined, generation: 3 })
    if (!result.ok) throw new Error(JSON.stringify(result.problems))
    expect(JSON.parse(result.rendered.text)).toEqual({ ...document, mcpserver_generation: 3 })
    expect(result.rendered).toMatchObject({ generation: 3, unsupported: [] })
  })

  test('keeps the guard number, and every byte, while nothing changes', () => {
    const first = render(document, undefined, 3)
    const again = render({ ...document }, first.text, 7)
    expect(again).toEqual(first)
  })

  test('the order in which parts are joined changes nothing', () => {
    const a = render({ ...document, tools_filter: ['x'], trust_proxy_headers: true }, undefined, 1)
    const b = render({ trust_proxy_headers: true, tools_filter: ['x'], ...document }, undefined, 1)
    expect(a.text).toBe(b.text)
  })

  test('raises the guard number with the content, also when the generation did not rise', () => {
    const first = render(document, undefined, 3)
    expect(render({ ...document, image: 'example/server:2' }, first.text, 4).generation).toBe(4)
    expect(render({ ...document, image: 'example/server:2' }, first.text, 3).generation).toBe(4)
    expect(render({ ...document, image: 'example/server:2' }, first.text, 9).generation).toBe(9)
  })

  test('starts over from something that is no document', () => {
    expect(render(document, 'not JSON', 2).generation).toBe(2)
  })

  test('says what the runner would refuse, by field', () => {
    const result = renderRunConfig({ ...document, transport: 'smoke' as 'stdio' }, { live: undefined, generation: 1 })
    expect(result).toMatchObject({ ok: false, problems: [{ path: 'transport' }] })
  })

  test('names what cannot be applied', () => {
    const authz = { version: '1.0', type: 'httpv1' }
    expect(render({ ...document, authz_config: authz }, undefined, 1).unsupported).toEqual([
      { field: 'authz_config.type', middleware: 'authorization-httpv1' },
    ])
  })
})

describe('joinRunConfig', () => {
  test('joins what differs and refuses what is said twice', () => {
    expect(joinRunConfig(document, [{ runConfig: { trust_proxy_headers: true } }, {}])).toEqual({ ...document, trust_proxy_headers: true })
    expect(() => joinRunConfig(document, [{ runConfig: { name: 'other' } }])).toThrow('two parts of a workload set name')
  })

  test('scaling has two parts', () => {
    const joined = joinRunConfig({ scaling_config: { backend_replicas: 2 } }, [
      { runConfig: { scaling_config: { session_redis: { address: 'r:6379', db: 0 } } } },
    ])
    expect(joined.scaling_config).toEqual({ backend_replicas: 2, session_redis: { address: 'r:6379', db: 0 } })
  })
})

describe('lacksProtection', () => {
  test.each<[string, string | undefined, object, boolean]>([
    ['nothing is wanted', '{}', {}, false],
    ['nothing runs and nothing is wanted', undefined, {}, false],
    ['a guard is wanted and nothing is known of what runs', undefined, { oidc_config: true }, true],
    ['a guard is wanted and is not there', '{"name":"web"}', { oidc_config: true }, true],
    ['a guard is wanted and an older one is there', '{"oidc_config":{"issuer":"https://a"}}', { oidc_config: true }, false],
    ['one of two is there', '{"oidc_config":{}}', { oidc_config: true, authz_config_path: true }, true],
    ['policies are wanted and are in the document itself, as before', '{"authz_config":{}}', { authz_config_path: true }, false],
    ['a guard is there that is no longer wanted', '{"oidc_config":{}}', { oidc_config: false }, false],
  ])('%s', (_, live, wanted, expected) => {
    expect(lacksProtection(live, wanted)).toBe(expected)
  })
})

function render(input: RunConfigDocument, live: string | undefined, generation: number) {
  const result = renderRunConfig(input, { live, generation })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.rendered
}
