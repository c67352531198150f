import { AUTHORIZATION_PASSED, runAuthorizationSuite } from '@thv/testkit/oauth/authorization-suite'
import { expect, it } from 'vitest'
import { startLoginRunner } from './testing/login-runner.ts'

it('conformance authorization: a runner with an authorization server passes both scenarios', async () => {
  await using stack = new AsyncDisposableStack()
  const { issuer, runner } = await startLoginRunner(stack, { disable_upstream_token_injection: true })
  const { exitCode, output } = await runAuthorizationSuite({ issuer, resource: runner.url, user: 'ada' })
  for (const line of AUTHORIZATION_PASSED) expect(output).toContain(line)
  expect(exitCode).toBe(0)
})
