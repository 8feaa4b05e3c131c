/** Bytes of everything that this page or worker has loaded, as they came over the wire. */
export const loadedBytes = () => performance.getEntriesByType('resource').reduce((sum, entry) => sum + entry.encodedBodySize, 0);
