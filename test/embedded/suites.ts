/** Files *.cluster.test.ts that the embedded plane does not run, and why. All others run on both planes. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'packages/testkit/src/cluster/**': 'the harness of the real programs itself',
  'packages/cluster/**': 'compares our API server and controllers with the real ones, or starts its own',
  'packages/kube-schema/**': 'compares our schemas and patches with the real API server',
  'apps/operator/src/webhook/**': 'our API server asks no webhooks',
  'test/deploy/chart*.cluster.test.ts': 'what Helm makes of our values; the rights that it grants',
  'test/deploy/operator-rights.cluster.test.ts': 'rights only: access reviews and impersonation',
  'test/deploy/runner-rights.cluster.test.ts': 'rights only: access reviews',
  'test/e2e/**': 'the e2e stories have a project of their own',
}
