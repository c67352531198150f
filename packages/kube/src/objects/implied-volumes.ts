/** The volume that the proxy runner mounts at /tmp of every container, because their root is read-only. No user has declared it. */
export const TMP_VOLUME = 'thv-tmp'
