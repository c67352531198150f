import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { inheritedEnvironment, installerEnvironment } from '@thv/programs/program-environment'
import { describe, expect, it } from 'vitest'
import { configOf } from '../testing/runtime-fixtures.ts'
import { serverEnvironment } from './child-environment.ts'

const OURS = {
  PATH: '/bin',
  HOME: '/home/me',
  LC_ALL: 'C',
  https_proxy: 'http://proxy:1',
  NODE_OPTIONS: '--inspect',
  TOOLHIVE_SECRET_token: 'hunter2',
  KUBECONFIG: '/k',
  AWS_SECRET_ACCESS_KEY: 'x',
  npm_config_registry: 'r',
  UV_PUBLISH_TOKEN: 'x',
  UV_INDEX_URL: 'i',
  UNSET: undefined,
}

describe('the environment of a server', () => {
  it('has of ours only what a program needs to run', () => {
    expect(inheritedEnvironment(OURS)).toEqual({ PATH: '/bin', HOME: '/home/me', LC_ALL: 'C', https_proxy: 'http://proxy:1' })
    expect(installerEnvironment(OURS)).toEqual({ ...inheritedEnvironment(OURS), npm_config_registry: 'r', UV_INDEX_URL: 'i' })
  })

  it('has none of the memory settings of our own programs', () => {
    const ours = { ...MEMORY_SETTINGS, NODE_COMPILE_CACHE: '/app/compile-cache', NODE_COMPILE_CACHE_PORTABLE: '1' }
    expect(inheritedEnvironment(ours)).toEqual({})
    expect(installerEnvironment(ours)).toEqual({})
    expect(serverEnvironment(configOf({}), ours, undefined)).toEqual({ MCP_TRANSPORT: 'stdio' })
  })

  it('has the settings that its run config gives it', () => {
    const config = configOf({ env_vars: { NODE_OPTIONS: '--max-semi-space-size=64' } })
    expect(serverEnvironment(config, MEMORY_SETTINGS, undefined)).toEqual({
      NODE_OPTIONS: '--max-semi-space-size=64',
      MCP_TRANSPORT: 'stdio',
    })
  })

  it('lets secrets win over env_vars, and what the transport demands over both', () => {
    const config = configOf({
      transport: 'streamable-http',
      env_vars: { MCP_HOST: '0.0.0.0', MCP_PORT: '1', TOKEN: 'plain', HOME: '/elsewhere', EXTRA: 'x' },
      secrets: ['token,target=TOKEN'],
    })
    expect(serverEnvironment(config, OURS, 4711)).toEqual({
      PATH: '/bin',
      HOME: '/elsewhere',
      LC_ALL: 'C',
      https_proxy: 'http://proxy:1',
      EXTRA: 'x',
      TOKEN: 'hunter2',
      MCP_TRANSPORT: 'streamable-http',
      MCP_PORT: '4711',
      FASTMCP_PORT: '4711',
      MCP_HOST: '127.0.0.1',
    })
    expect(serverEnvironment(configOf({}), {}, undefined)).toEqual({ MCP_TRANSPORT: 'stdio' })
  })

  it('names the variable of a secret that is not set', () => {
    expect(() => serverEnvironment(configOf({ secrets: ['other,target=TOKEN'] }), OURS, undefined)).toThrow(
      /TOOLHIVE_SECRET_other.* is not set/,
    )
  })
})
