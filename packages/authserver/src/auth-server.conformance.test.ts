import { AUTHORIZATION_PASSED, runAuthorizationSuite } from '@thv/testkit/oauth/authorization-suite'
import { expect, it } from 'vitest'
import { startTestAuthServer } from './testing/test-auth-server.ts'

it('conformance authorization: the server alone passes both scenarios, with a user who logs in upstream', async () => {
  await using server = await startTestAuthServer()
  const { issuer, resource } = server
  const { exitCode, output } = await runAuthorizationSuite({ issuer, resource, user: 'ada' })
  for (const line of AUTHORIZATION_PASSED) expect(output).toContain(line)
  expect(exitCode).toBe(0)
})
