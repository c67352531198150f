/** Content of /version. Clients read major and minor; the rest tells people what they talk to. */
export const VERSION = {
  major: '1',
  minor: '34',
  gitVersion: 'v1.34.1+thv',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const
