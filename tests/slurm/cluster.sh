#!/bin/bash
# A Slurm of two virtual nodes (n1, n2: 8 GPUs each) inside its own mount and process namespace, over a throw-away copy
# of the root file system; runs the script given as $1 in it. Everything dies with the namespace.
#
#   unshare -m -p -f --kill-child --mount-proc bash cluster.sh DRIVER FOLDER
set -eu
driver=$1 folder=$2
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir -p /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for part in sys dev tmp; do mount --rbind "/$part" "/mnt/root/$part"; done
mkdir -p "/mnt/root$folder"
mount --bind "$folder" "/mnt/root$folder"
mount -t proc proc /mnt/root/proc
cat > /mnt/root/root/inside.sh <<'INSIDE'
set -eu
driver=$1 folder=$2
host=$(hostname)
export PATH="$folder/bin:$PATH"
mkdir -p /run/munge /var/log/munge /var/lib/munge /etc/munge /etc/slurm /var/spool/ctld /var/spool/slurmd
chown munge: /run/munge /var/log/munge /var/lib/munge /etc/munge
chmod 755 /run/munge
[ -s /etc/munge/munge.key ] || head -c 128 /dev/urandom > /etc/munge/munge.key
chown munge: /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
for i in 0 1 2 3 4 5 6 7; do [ -e /root/nvidia$i ] || mknod /root/nvidia$i c 1 3; done
cat > /etc/slurm/slurm.conf <<CONF
ClusterName=virtual
SlurmctldHost=$host
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
GresTypes=gpu
StateSaveLocation=/var/spool/ctld
SlurmdSpoolDir=/var/spool/slurmd/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
SlurmctldPort=17000
KillWait=5
Epilog=$folder/site-epilog.sh
NodeName=n1 NodeHostname=$host Port=17001 CPUs=64 RealMemory=8000 Gres=gpu:a100:8
NodeName=n2 NodeHostname=$host Port=17002 CPUs=64 RealMemory=8000 Gres=gpu:a100:8
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
echo "NodeName=n[1-2] Name=gpu Type=a100 File=/root/nvidia[0-7]" > /etc/slurm/gres.conf
[ -e "$folder/site-epilog.sh" ] || printf '#!/bin/bash\nexit 0\n' > "$folder/site-epilog.sh"
chmod 755 "$folder/site-epilog.sh"
su -s /bin/bash munge -c /usr/sbin/munged
slurmctld
for node in n1 n2; do slurmd -N $node; done
for _ in $(seq 100); do
  [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
  sleep 0.1
done
sinfo -N >&2
exec bash "$driver" "$folder"
INSIDE
exec chroot /mnt/root bash /root/inside.sh "$driver" "$folder"
