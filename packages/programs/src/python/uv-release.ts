/**
 * The release of uv that is fetched where the machine has none, with the SHA-256 of its wheels: whatever index or mirror they come from,
 * only these files are run. To update, take version and hashes from the page of uv on PyPI.
 */
const UV_VERSION = '0.13.7'

/** One file per platform that this project runs on. The first that fits is fetched; pip may choose another one of them. */
const WHEELS: readonly { readonly tags: string; readonly fits: string; readonly sha256: string }[] = [
  {
    tags: 'manylinux_2_17_x86_64.manylinux2014_x86_64',
    fits: 'linux-x64-glibc',
    sha256: '2c9bdc4a872b60a93c5f26c0791089ea11585a4f9d3b3c017d78eb8487505e25',
  },
  {
    tags: 'musllinux_1_1_x86_64',
    fits: 'linux-x64-musl',
    sha256: '8b8ac028ae4ebb2a3f9d04907c61794f2cf8d7a7002bfbb4019a3dee28351fb2',
  },
  {
    tags: 'manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64',
    fits: 'linux-arm64-glibc linux-arm64-musl',
    sha256: 'a90f5d95716ab83091f0f73a8e7ec64e557abf2a28537fcd719b2ac88e6f725a',
  },
  {
    tags: 'manylinux_2_28_aarch64',
    fits: 'linux-arm64-glibc',
    sha256: '08f16fd463926786b702b497473511deae4b3e17a2fa6d22180950d6059a120d',
  },
  { tags: 'macosx_11_0_arm64', fits: 'darwin-arm64', sha256: 'f91a229093163eefca89ea1b220a221d64c3beade05d03519a6584d1797a5a5f' },
  { tags: 'macosx_10_12_x86_64', fits: 'darwin-x64', sha256: 'fd04bf01ba5f2829f4f94ca8f0c24a743f21e73d75045613ed6fc2fd66fc7bda' },
]

export interface UvRelease {
  readonly version: string
  /** Of the wheel to fetch; undefined where no file fits this platform. */
  readonly file: string | undefined
  /** SHA-256 of every file that may be run. */
  readonly accepted: ReadonlySet<string>
}

export function uvRelease(platform = thisPlatform()): UvRelease {
  const wheel = WHEELS.find(({ fits }) => fits.split(' ').includes(platform))
  return {
    version: UV_VERSION,
    file: wheel && `uv-${UV_VERSION}-py3-none-${wheel.tags}.whl`,
    accepted: new Set(WHEELS.map(({ sha256 }) => sha256)),
  }
}

function thisPlatform(): string {
  const { platform, arch } = process
  if (platform !== 'linux') return `${platform}-${arch}`
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }
  return `${platform}-${arch}-${header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'}`
}
