/** The one place that names the versions. `staging` is the version under which Kubernetes publishes its own libraries. */
export const versions = {
  kubernetes: 'v1.34.1',
  staging: 'v0.34.1',
  major: '1',
  minor: '34',
  etcd: 'v3.6.5',
  coredns: 'v1.13.1',
  go: { major: 1, minor: 24 },
} as const
